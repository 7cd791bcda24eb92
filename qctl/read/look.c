#include "qctl/read/look.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/num.h"
#include "qctl/read/user.h"

#define PROGRAM    "queue-look"
#define GROUPS     "/etc/group"
#define GROUPS_MAX 65536

/* The last part of a path. */
static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static int
complain(const char *program, int code, const char *text)
{
	fprintf(stderr, "%s: %s\n", program, text);
	return code;
}

/* ---- readers ---- */

/* No other database is asked: its modules would run with our rights. */
gid_t
look_find_group(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	const struct group *g;
	gid_t found = (gid_t)-1;
	uint64_t number;

	while (f != NULL && found == (gid_t)-1 && (g = fgetgrent(f)) != NULL)
		if (strcmp(g->gr_name, name) == 0)
			found = g->gr_gid;
	if (f != NULL)
		(void)fclose(f);
	if (found == (gid_t)-1 &&
	    num_u64(name, 0, UINT32_MAX - 1, &number) == 0)
		found = (gid_t)number;
	return found;
}

static bool
has_group(const gid_t *groups, size_t count, gid_t wanted)
{
	size_t i;

	for (i = 0; wanted != (gid_t)-1 && i < count; i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

bool
look_is_reader(const struct conf *conf, const char *groups_path,
    const gid_t *groups, size_t count)
{
	const char *const names[] = { conf->reader_group, conf->operator_group,
		conf->qmail_group };
	size_t i;

	if (strcmp(conf->reader_group, CONF_READERS_ALL) == 0)
		return true;
	for (i = 0; i < ARRAY_LEN(names); i++)
		if (names[i][0] != '\0' &&
		    has_group(
			groups, count, look_find_group(groups_path, names[i])))
			return true;
	return false;
}

/* The groups of the caller: the effective one is the program's. The number, or
 * -errno. */
static int
own_groups(gid_t **ret)
{
	gid_t *groups = calloc(GROUPS_MAX + 1, sizeof(*groups));
	int n = groups == NULL ? -1 : getgroups(GROUPS_MAX, groups);

	if (n < 0) {
		n = groups == NULL ? -ENOMEM : -errno;
		free(groups);
		return n;
	}
	groups[n] = getgid();
	*ret = groups;
	return n + 1;
}

bool
look_is_own_share(int argc, char *const *argv, const char *name, uid_t uid)
{
	char number[16];
	int i;

	(void)snprintf(number, sizeof(number), "%u", (unsigned)uid);
	if (argc < 2 || strcmp(base_name(argv[0]), "qctl") != 0 ||
	    strcmp(argv[1], "shares") != 0)
		return false;
	for (i = 2; i < argc; i++)
		if (strcmp(argv[i], "--json") != 0 &&
		    strcmp(argv[i], number) != 0 &&
		    (*name == '\0' || strcmp(argv[i], name) != 0))
			return false;
	return true;
}

static int
judge_user(const char *program, const struct conf *conf, bool *ret_reads)
{
	gid_t *groups = NULL;
	bool reads = getuid() == 0;
	int n = reads ? 0 : own_groups(&groups);

	if (n < 0)
		return complain(program, EX_OSERR, strerror(-n));
	reads = reads || look_is_reader(conf, GROUPS, groups, (size_t)n);
	free(groups);
	*ret_reads = reads;
	return EX_OK;
}

/* ---- queue-look ---- */

bool
look_is_called(int argc, char *const *argv)
{
	return guard_is_secure() ||
	    (argc > 0 && strcmp(base_name(argv[0]), PROGRAM) == 0);
}

static int
judge_base(const char *program, const char *base, struct conf *ret_conf)
{
	int r = guard_trust(base, CONF_IN_FORCE_NAME);

	if (r == -EPERM)
		return complain(program, EX_NOPERM,
		    "this is for an instance of root: others than root may "
		    "write to its directory");
	if (r == 0)
		r = conf_load_base(base, ret_conf);
	return r == 0 ? EX_OK : complain(program, EX_CONFIG, strerror(-r));
}

/* A kernel that cannot lock down is no reason to show nothing. */
static int
make_safe(bool secure)
{
	int r = guard_process();

	if (r == 0 && secure)
		r = look_lock_down();
	return r == -EOPNOTSUPP ? 0 : r;
}

int
look_begin(
    int argc, char *const *argv, struct conf *ret_conf, bool *ret_own_only)
{
	const char *program =
	    argc > LOOK_WORDS ? base_name(argv[LOOK_WORDS]) : PROGRAM;
	const bool secure = guard_is_secure();
	bool reads = false;
	int code, r = make_safe(secure);

	if (r < 0)
		return complain(program, EX_OSERR, strerror(-r));
	if (argc <= LOOK_WORDS)
		return complain(program, EX_USAGE,
		    "is started by qctl, for users who may look");
	if (!secure)
		return complain(program, EX_NOPERM,
		    LOOK_DENIED
		    " (this program is not set-group-id qmail_group, "
		    "or may not be so here)");
	code = judge_base(program, argv[1], ret_conf);
	if (code != EX_OK)
		return code;
	code = judge_user(program, ret_conf, &reads);
	*ret_own_only = !reads;
	if (code == EX_OK && !reads &&
	    !look_is_own_share(argc - LOOK_WORDS, argv + LOOK_WORDS,
		user_name(getuid()), getuid()))
		code = complain(program, EX_NOPERM, LOOK_DENIED);
	if (code != EX_OK)
		conf_done(ret_conf);
	return code;
}

/* ---- qctl ---- */

/* The maildir of root tells the group of the queues, and lies on none of their
 * disks, which may not answer. */
static bool
reads_by_itself(const char *base)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/mailbox", base) >= PATH_MAX ||
	    stat(path, &st) < 0)
		return true;
	return geteuid() == 0 || geteuid() == st.st_uid ||
	    getegid() == st.st_gid || group_member(st.st_gid) != 0;
}

void
look_become(const struct conf *conf, char *const *argv)
{
	char program[PATH_MAX], base[PATH_MAX], name[] = PROGRAM;
	char *nothing[] = { NULL }, **words;
	size_t n = 0;

	/* Links are followed here: queue-look follows none. */
	if (reads_by_itself(conf->queue_base) ||
	    realpath(conf->queue_base, base) == NULL ||
	    conf_find_program(conf, PROGRAM, program) < 0)
		return;
	while (argv[n] != NULL)
		n++;
	words = calloc(n + LOOK_WORDS + 1, sizeof(*words));
	if (words == NULL)
		return;
	words[0] = name;
	words[1] = base;
	memcpy(words + LOOK_WORDS, argv, n * sizeof(*words));
	execve(program, words, nothing);
	free(words);
}
