#include "spool/hold_rule.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "spool/format.h"

#define NEW_NAME   HOLD_RULES_NAME ".new"
#define NAME_SIZE  32
#define MODE       0640
#define ASIDE_MAX  100
/* Numbers of rules that were put aside with their file are not used again. */
#define ASIDE_STEP 1000000

static void
print_row(struct buf *out, const struct hold_rule *rule)
{
	size_t i;

	buf_printf(out, "%" PRIu32 "\t%" PRIu32 "\t%" PRId64 "\t%" PRId64 "\t",
	    rule->number, (uint32_t)rule->uid, rule->since_wall / USEC_PER_SEC,
	    rule->until_wall / USEC_PER_SEC);
	for (i = 0; i < RULE_NKEYS; i++)
		buf_printf(out, "%s\t", rule->pattern[i]);
	buf_printf(out, "%s\n", rule->reason);
}

/* Rules but for one, and those whose time is over; one more, unless NULL. */
static int
print(struct buf *out, const struct hold_rules *rules, uint32_t without,
    const struct hold_rule *more, usec_t now_wall)
{
	uint32_t i;

	buf_printf(out, HOLD_RULES_HEAD "%" PRIu32 "\n", rules->next);
	for (i = 0; i < rules->count; i++)
		if (rules->rows[i].number != without &&
		    !hold_rule_is_over(&rules->rows[i], now_wall))
			print_row(out, &rules->rows[i]);
	if (more != NULL)
		print_row(out, more);
	buf_printf(out, "%08" PRIx32 "\n", format_crc(0, out->data, out->len));
	return out->error;
}

/* A file of that name that a crash left may be another user's. */
static int
write_new(const struct spool_sys *sys, int dir, const struct buf *text)
{
	int r, fd;

	if (sys->unlinkat(dir, NEW_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = sys->openat(dir, NEW_NAME,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd < 0)
		return -errno;
	r = spool_write_all(sys, fd, text->data, text->len);
	if (r == 0 && (fchmod(fd, MODE) < 0 || sys->fsync(fd) < 0))
		r = -errno;
	if (sys->close(fd) < 0 && r == 0)
		r = -errno;
	return r;
}

static int
replace(const struct spool_sys *sys, int dir, const struct buf *text)
{
	int r = write_new(sys, dir, text);

	if (r == 0 && sys->replaceat(dir, NEW_NAME, HOLD_RULES_NAME) < 0)
		r = -errno;
	if (r < 0) {
		(void)sys->unlinkat(dir, NEW_NAME, 0);
		return r;
	}
	return sys->fsync(dir) < 0 ? -errno : 0;
}

/* ---- files that were put aside ---- */

/* hold.aside-N of the first N that is free. */
static int
free_aside(int dir, uint32_t *ret_n, char name[NAME_SIZE])
{
	struct stat st;
	uint32_t i;

	for (i = 1; i <= ASIDE_MAX; i++) {
		snprintf(name, NAME_SIZE, HOLD_RULES_NAME ".aside-%" PRIu32, i);
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		*ret_n = i;
		return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

/* The numbers of rules that are without a file, or behind the n-th file that
 * was put aside, begin anew, higher: a crash may have come between the move of
 * that file and the next one. */
static int
begin_numbers(int dir, struct hold_rules *rules)
{
	char name[NAME_SIZE];
	uint32_t n;
	int r = free_aside(dir, &n, name);

	if (r == 0)
		rules->next = (n - 1) * ASIDE_STEP + 1;
	return r;
}

static int
set_aside(const struct spool_sys *sys, int dir, struct hold_rules *rules)
{
	char name[NAME_SIZE];
	uint32_t n;
	int r = free_aside(dir, &n, name);

	if (r == 0 && sys->renameat(dir, HOLD_RULES_NAME, dir, name) < 0)
		r = -errno;
	hold_rules_done(rules);
	return r;
}

/* ---- a change ---- */

static int
write_changed(const struct spool_sys *sys, int dir, struct hold_rules *rules,
    struct hold_rules_change *c)
{
	struct hold_rule row;
	struct buf text = { 0 };
	int r;

	if (c->more != NULL) {
		row = *c->more;
		row.number = c->number = rules->next++;
	}
	r = print(&text, rules, c->without, c->more == NULL ? NULL : &row,
	    c->now_wall);
	if (r == 0)
		r = replace(sys, dir, &text);
	buf_done(&text);
	return r;
}

static uint32_t
count_left(const struct hold_rules *rules, usec_t now_wall)
{
	uint32_t i, n = 0;

	for (i = 0; i < rules->count; i++)
		n += !hold_rule_is_over(&rules->rows[i], now_wall);
	return n;
}

static int
judge(const struct hold_rules *rules, const struct hold_rules_change *c)
{
	uint32_t i;

	if (c->more != NULL)
		return rules->next == UINT32_MAX ||
			count_left(rules, c->now_wall) >= HOLD_RULES_MAX
		    ? -ENOSPC
		    : 0;
	for (i = 0; i < rules->count; i++)
		if (rules->rows[i].number == c->without)
			return 0;
	return -ESRCH;
}

static int
change_at(const struct spool_sys *sys, int dir, struct hold_rules_change *c)
{
	struct hold_rules rules = { .next = 1 };
	bool none;
	int r;

	if (sys->flock(dir, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	r = hold_rules_read_at(sys, dir, &rules);
	none = r == 0 && rules.seen.st_ino == 0;
	if (r == -EBADMSG && c->more != NULL) {
		r = set_aside(sys, dir, &rules);
		none = c->aside = r == 0;
	}
	if (none)
		r = begin_numbers(dir, &rules);
	if (r == 0)
		r = judge(&rules, c);
	if (r == 0)
		r = write_changed(sys, dir, &rules, c);
	hold_rules_done(&rules);
	return r;
}

int
hold_rules_change(
    const struct spool_sys *sys, const char *base, struct hold_rules_change *c)
{
	int dir, r;

	if (c->more != NULL && !hold_rule_is_right(c->more))
		return -EINVAL;
	dir = hold_rules_open_dir(sys, base, O_RDONLY);
	if (dir < 0)
		return dir;
	r = change_at(sys, dir, c);
	io_close(&dir);
	return r;
}
