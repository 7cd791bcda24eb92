#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "spool/marker.h"
#include "spool_scratch.h"

static struct stat
stat_of(const struct scratch *s, const char *name)
{
	char path[256];
	struct stat st = { 0 };

	snprintf(path, sizeof(path), "%s/%s", s->base, name);
	cr_expect_eq(lstat(path, &st), 0, "%s", path);
	return st;
}

static void
check_shape(const struct scratch *s, const char *name, uid_t uid, gid_t gid,
    mode_t mode)
{
	const struct stat st = stat_of(s, name);

	cr_expect_eq(st.st_uid, uid, "%s: owner %u", name, st.st_uid);
	cr_expect_eq(st.st_gid, gid, "%s: group %u", name, st.st_gid);
	cr_expect_eq(st.st_mode & 07777, mode, "%s: mode %o", name, st.st_mode);
}

static void
check_queue(const struct scratch *s)
{
	const struct spool_owner *o = &s->owner;
	char name[64];
	unsigned i;

	check_shape(s, "queue1", o->qmails, o->qmail, o->private ? 0700 : 0751);
	check_shape(
	    s, "queue1/gate", o->qmailq, o->qdrop, o->private ? 0700 : 0710);
	for (i = 0; i < SPOOL_NDIRS; i++) {
		const struct spool_dir_info *d = &spool_dirs[i];
		const uid_t uid = d->owner_qmailq ? o->qmailq : o->qmails;
		const mode_t mode =
		    o->private ? d->mode_private : d->mode_shared;

		snprintf(name, sizeof(name), "queue1/%s", d->name);
		check_shape(s, name, uid, o->qmail, mode);
		if (!d->split)
			continue;
		snprintf(name, sizeof(name), "queue1/%s/%d", d->name,
		    SCRATCH_SPLIT - 1);
		check_shape(s, name, uid, o->qmail, mode);
	}
	cr_expect_eq(stat_of(s, "queue1/queue").st_mode & 07777, 0644u);
}

Test(spool_create, private_instance)
{
	struct scratch s;

	umask(077);
	scratch_open(&s);
	check_queue(&s);
	check_shape(&s, "", geteuid(), getegid(), 0700);
	cr_expect(s.sp.private);
	cr_expect_eq(s.sp.split, (uint32_t)SCRATCH_SPLIT);
	scratch_close(&s);
}

Test(spool_create, users_of_its_own)
{
	struct scratch s;

	if (geteuid() != 0)
		cr_skip_test("needs root to give directories away");
	umask(077);
	scratch_open_shared(&s);
	check_queue(&s);
	check_shape(&s, "", 0, getegid(), 0755);
	cr_expect(!s.sp.private);
	scratch_close(&s);
}

/* Made again: nothing changes, what is missing or wrong is put right, the
 * split stays what it was. */
Test(spool_create, again_and_again)
{
	struct scratch s;
	struct queue_id id;
	char path[256];

	scratch_open(&s);
	id = scratch_put(&s);
	snprintf(path, sizeof(path), "%s/queue1/hold", s.base);
	cr_assert_eq(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/queue1/active/1", s.base);
	cr_assert_eq(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/queue1/defer", s.base);
	cr_assert_eq(chmod(path, 0777), 0);
	cr_assert_eq(spool_create(s.base, 1, 17, &s.owner), 0);
	check_queue(&s);
	snprintf(path, sizeof(path), "%s/queue1/active/16", s.base);
	cr_expect_eq(access(path, F_OK), -1, "not of the new split");
	cr_expect_eq(
	    access(scratch_path(&s, SPOOL_INCOMING, id.inode), F_OK), 0);
	scratch_close(&s);
}

/* What is not asked for is neither open nor missed. */
Test(spool_create, some_of_the_directories)
{
	const unsigned bits =
	    SPOOL_DIR_BIT(SPOOL_INCOMING) | SPOOL_DIR_BIT(SPOOL_LOCK);
	struct spool sp;
	struct scratch s;
	char path[256];
	unsigned dir;

	scratch_open(&s);
	snprintf(path, sizeof(path), "%s/queue1/hold", s.base);
	cr_assert_eq(rmdir(path), 0);
	cr_expect_eq(spool_open(&sp, &fault_sys, s.base, 1), -EMEDIUMTYPE);
	cr_assert_eq(spool_open_some(&sp, &fault_sys, s.base, 1, bits), 0);
	for (dir = 0; dir < SPOOL_NDIRS; dir++)
		cr_expect_eq(sp.dir[dir] >= 0, (bits >> dir & 1) != 0, "%s",
		    spool_dirs[dir].name);
	cr_expect_eq(sp.split, (uint32_t)SCRATCH_SPLIT);
	cr_expect(sp.private);
	cr_expect_eq(sp.owner[SPOOL_INCOMING], geteuid());
	spool_close(&sp);
	cr_expect_eq(spool_open_some(
			 &sp, &fault_sys, s.base, 1, SPOOL_DIR_BIT(SPOOL_HOLD)),
	    -EMEDIUMTYPE);
	scratch_close(&s);
}

/* A crash in the middle: only the temporary name is there, in any state. */
Test(spool_create, D24_a_creation_that_was_cut)
{
	struct spool sp;
	struct scratch s;
	char from[512], to[256];

	scratch_open(&s);
	snprintf(from, sizeof(from), "%s/queue1", s.base);
	snprintf(to, sizeof(to), "%s/new.queue2", s.base);
	cr_assert_eq(rename(from, to), 0);
	snprintf(from, sizeof(from), "%s/queue", to);
	cr_assert_eq(unlink(from), 0, "all but the marker");
	cr_expect_eq(spool_open(&sp, &fault_sys, s.base, 2), -ENOENT);
	cr_assert_eq(spool_create(s.base, 2, 5, &s.owner), 0);
	cr_assert_eq(spool_open(&sp, &fault_sys, s.base, 2), 0);
	cr_expect_eq(sp.split, 5u);
	spool_close(&sp);
	cr_expect_eq(access(to, F_OK), -1);
	scratch_close(&s);
}

Test(spool_create, D19_no_marker_is_no_queue_and_is_not_made_one)
{
	struct spool sp;
	struct scratch s;
	char path[256];

	scratch_open(&s);
	cr_expect_eq(spool_open(&sp, &fault_sys, s.base, 9), -ENOENT);
	/* The directory that a file system should be mounted on. */
	snprintf(path, sizeof(path), "%s/queue9", s.base);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_expect_eq(spool_open(&sp, &fault_sys, s.base, 9), -ENOENT);
	cr_expect_eq(spool_create(s.base, 9, 5, &s.owner), -ENOENT);
	cr_expect_neq(queue_file_reason()[0], '\0');
	cr_expect_eq(rmdir(path), 0, "still empty");
	scratch_close(&s);
}

Test(spool_create, D19_damaged_markers)
{
	static const char *const rows[] = {
		"",
		"\n",
		"qscheduler queue 1 split 23",
		"qscheduler queue  split 23\n",
		"qscheduler queue -1 split 23\n",
		"qscheduler queue 1split 23\n",
		"qscheduler queue 1000000000 split 23\n",
		"qscheduler queue 1 split 0\n",
		"qscheduler queue 1 split 1025\n",
		"qscheduler queue 1 split 23 \n",
		"qscheduler queue 1 split -1\n",
		"qscheduler queue 1 split 99999999999999999999\n",
		"qscheduler queue 1 split "
		"0000000000000000000000000000000000023\n"
		"and more",
		"qscheduler queue 1 split 23\nqscheduler queue 1 split 24\n",
	};
	struct spool sp;
	struct scratch s;
	char path[256];
	size_t i;

	scratch_open(&s);
	snprintf(path, sizeof(path), "%s/queue1/queue", s.base);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		scratch_spill(path, rows[i]);
		cr_expect_eq(spool_open(&sp, &fault_sys, s.base, 1), -EBADMSG,
		    "\"%s\"", rows[i]);
		cr_expect_eq(spool_create(s.base, 1, 3, &s.owner), -EBADMSG);
	}
	unlink(path);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	cr_expect_eq(spool_open(&sp, &fault_sys, s.base, 1), -ELOOP);
	scratch_close(&s);
}

/* Names and markers of all that is there. */
static void
take_state(const struct scratch *s, char *out, size_t size)
{
	char command[256];
	FILE *f;

	snprintf(command, sizeof(command),
	    "cd %s && ls -lRi --time-style=full-iso && cat queue1/queue",
	    s->base);
	f = popen(command, "r");
	cr_assert_not_null(f);
	out[fread(out, 1, size - 1, f)] = '\0';
	cr_assert_eq(pclose(f), 0);
}

/* mutation: common/spool/marker.c: judge_version() takes any version. */
Test(spool_create, P20_a_layout_of_another_version_is_refused)
{
	static char before[65536], after[65536];
	static const struct {
		const char *marker, *version;
	} rows[] = {
		{ "qscheduler queue 0 split 23\n", "layout version 0," },
		{ "qscheduler queue 2 split 23\n", "layout version 2," },
		{ "qscheduler queue 10\n", "layout version 10," },
		{ "qscheduler queue 2 format of a later time\nand more\n",
		    "layout version 2," },
	};
	struct spool sp;
	struct scratch s;
	char path[256];
	size_t i;

	scratch_open(&s);
	snprintf(path, sizeof(path), "%s/queue1/queue", s.base);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		scratch_spill(path, rows[i].marker);
		take_state(&s, before, sizeof(before));
		cr_expect_eq(
		    spool_open(&sp, &fault_sys, s.base, 1), -EMEDIUMTYPE);
		cr_expect_eq(strncmp(spool_error(-EMEDIUMTYPE), path,
				 strlen(path) - strlen("/queue")),
		    0);
		cr_expect_not_null(
		    strstr(spool_error(-EMEDIUMTYPE), rows[i].version));
		cr_expect_not_null(strstr(spool_error(-EMEDIUMTYPE),
		    "reads version 1; nothing was changed: deliver its mail"));
		cr_expect_eq(
		    spool_create(s.base, 1, 3, &s.owner), -EMEDIUMTYPE);
		take_state(&s, after, sizeof(after));
		cr_expect_str_eq(after, before);
	}
	scratch_close(&s);
}

/* mutation: common/spool/spool.c: open_dir() returns -ENOENT. */
Test(spool_create, P20_directories_of_another_layout_are_refused)
{
	static const char *const rows[][2] = { { "maildrop", "old directory" },
		{ "prepared", "there is no directory prepared/;" },
		{ "gate", "no directory gate/maildrop/;" } };
	struct spool sp;
	struct scratch s;
	char path[256], aside[256];
	unsigned i;

	scratch_open(&s);
	snprintf(aside, sizeof(aside), "%s/aside", s.top);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(
		    path, sizeof(path), "%s/queue1/%s", s.base, rows[i][0]);
		cr_assert_eq(i == 0 ? mkdir(path, 0) : rename(path, aside), 0);
		cr_expect_eq(
		    spool_open(&sp, &fault_sys, s.base, 1), -EMEDIUMTYPE);
		cr_expect_not_null(
		    strstr(spool_error(-EMEDIUMTYPE), rows[i][1]));
		cr_assert_eq(i == 0 ? rmdir(path) : rename(aside, path), 0);
	}
	scratch_close(&s);
}

Test(spool_create, D19_a_marker_with_a_NUL_is_none_of_ours)
{
	static const char text[] = "qscheduler queue 1 split 23\0x\n";
	uint32_t split = 0;
	struct scratch s;
	int dir, fd;

	scratch_open(&s);
	dir = open(s.base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, "queue", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert_eq(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	cr_expect_eq(marker_read(dir, &split), -EBADMSG);
	cr_expect_eq(split, 0);
	close(fd);
	close(dir);
	scratch_close(&s);
}

Test(spool_create, F5_a_base_that_others_could_change)
{
	struct scratch s;
	char base[512], path[256];

	scratch_open(&s);
	cr_expect_eq(spool_create("relative/queue", 1, 3, &s.owner), -EINVAL);
	cr_expect_eq(spool_create("", 1, 3, &s.owner), -EINVAL);
	cr_expect_eq(spool_create("/", 1, 3, &s.owner), -EINVAL);
	snprintf(base, sizeof(base), "%s/..", s.base);
	cr_expect_eq(spool_create(base, 1, 3, &s.owner), -EINVAL);

	snprintf(base, sizeof(base), "%s/link", s.top);
	cr_assert_eq(symlink(s.base, base), 0);
	cr_expect_eq(spool_create(base, 1, 3, &s.owner), -ELOOP);
	cr_expect_neq(queue_file_reason()[0], '\0');

	snprintf(base, sizeof(base), "%s/file", s.top);
	scratch_spill(base, "");
	cr_expect_eq(spool_create(base, 1, 3, &s.owner), -ENOTDIR);

	snprintf(path, sizeof(path), "%s/open", s.top);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(chmod(path, 0777), 0);
	snprintf(base, sizeof(base), "%s/base", path);
	cr_expect_eq(spool_create(base, 1, 3, &s.owner), -EPERM);
	cr_expect_eq(access(base, F_OK), -1, "nothing was made");
	cr_assert_eq(chmod(path, 01777), 0);
	cr_expect_eq(spool_create(base, 1, 3, &s.owner), 0, "sticky is fine");
	scratch_close(&s);
}

Test(spool_create, F3_numbers_out_of_range)
{
	struct scratch s;

	scratch_open(&s);
	cr_expect_eq(spool_create(s.base, 1, 0, &s.owner), -EINVAL);
	cr_expect_eq(
	    spool_create(s.base, 1, SPOOL_SPLIT_MAX + 1, &s.owner), -EINVAL);
	cr_expect_eq(
	    spool_create(s.base, QUEUE_NUM_MAX + 1, 3, &s.owner), -EINVAL);
	scratch_close(&s);
}

Test(spool_create, what_is_missing_above_is_made)
{
	struct scratch s;
	struct stat st;
	char base[512], path[256];

	umask(077);
	scratch_open(&s);
	snprintf(base, sizeof(base), "%s/a/b/base", s.top);
	cr_assert_eq(spool_create(base, 1, 3, &s.owner), 0);
	snprintf(path, sizeof(path), "%s/a/b", s.top);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0755u, "whatever the umask says");
	scratch_close(&s);
}

/* Whoever owns queueN could put a link in a directory's place, so that root
 * gives away or changes what it points at. */
Test(spool_create, X1_links_in_the_place_of_directories)
{
	static const char *const places[] = { "queue1/hold", "queue1/incoming",
		"queue1/active/2", "queue1" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(places); i++) {
		struct scratch s;
		struct stat before, after;
		char victim[128], path[256], aside[256];

		scratch_open(&s);
		snprintf(victim, sizeof(victim), "%s/victim", s.top);
		cr_assert_eq(mkdir(victim, 0711), 0);
		cr_assert_eq(stat(victim, &before), 0);
		snprintf(path, sizeof(path), "%s/%s", s.base, places[i]);
		snprintf(aside, sizeof(aside), "%s/aside", s.top);
		cr_assert_eq(rename(path, aside), 0);
		cr_assert_eq(symlink(victim, path), 0);
		cr_expect_eq(spool_create(s.base, 1, 3, &s.owner), -ELOOP, "%s",
		    places[i]);
		cr_expect_eq(stat(victim, &after), 0);
		cr_expect_eq(after.st_mode, before.st_mode);
		cr_expect_eq(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
		unlink(path);
		scratch_spill(path, "");
		cr_expect_eq(spool_create(s.base, 1, 3, &s.owner), -ENOTDIR,
		    "%s", places[i]);
		scratch_close(&s);
	}
}

Test(spool_create, X1_a_stranger_owns_a_directory)
{
	struct scratch s;
	char path[256];

	if (geteuid() != 0)
		cr_skip_test("needs root to give a directory away");
	scratch_open(&s);
	snprintf(path, sizeof(path), "%s/queue1/hold", s.base);
	cr_assert_eq(chown(path, 65534, 65534), 0);
	cr_expect_eq(spool_create(s.base, 1, 3, &s.owner), -EPERM);
	check_shape(&s, "queue1/hold", 65534, 65534, 0700);
	scratch_close(&s);
}

Test(spool_create, D20_queues_are_listed_by_number)
{
	static const char *const rows[] = { "queue2", "queue10", "queue01",
		"queue0", "queue", "queuex", "queue-1", "queue4096",
		"queue4095", "new.queue3", "other" };
	static const uint32_t want[] = { 1, 2, 10, 4095 };
	uint32_t got[8];
	struct scratch s;
	char path[256];
	size_t i;

	scratch_open(&s);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(path, sizeof(path), "%s/%s", s.base, rows[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	snprintf(path, sizeof(path), "%s/queue5", s.base);
	scratch_spill(path, "a file");
	snprintf(path, sizeof(path), "%s/queue6", s.base);
	cr_assert_eq(symlink("queue2", path), 0);
	cr_assert_eq(
	    spool_list(s.base, got, ARRAY_LEN(got)), (int)ARRAY_LEN(want));
	cr_expect_eq(memcmp(got, want, sizeof(want)), 0);
	cr_expect_eq(spool_list(s.base, got, 2), 2);
	cr_expect_eq(got[1], 2u);
	snprintf(path, sizeof(path), "%s/nothing", s.top);
	cr_expect_eq(spool_list(path, got, 2), -ENOENT);
	scratch_close(&s);
}

/* renameat2() with a flag is EINVAL from here on, as on NFS. */
static void
lose_noreplace(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, args[4])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { ARRAY_LEN(code), code };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

Test(spool_create, D21_a_file_system_that_writes_over_names_has_no_queue)
{
	struct scratch s;

	scratch_open(&s);
	cr_expect_eq(spool_create(s.base, 1, SCRATCH_SPLIT, &s.owner), 0);
	cr_expect_eq(spool_create(s.base, 2, 3, &s.owner), 0);
	lose_noreplace();
	cr_expect_eq(
	    spool_create(s.base, 1, SCRATCH_SPLIT, &s.owner), -ENOTSUP);
	cr_expect_not_null(
	    strstr(queue_file_reason(), "rename without replacing"));
	cr_expect_eq(spool_create(s.base, 3, 3, &s.owner), -ENOTSUP);
	scratch_close(&s);
}
