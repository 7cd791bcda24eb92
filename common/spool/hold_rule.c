#include "spool/hold_rule.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/domain.h"
#include "base/io.h"
#include "base/num.h"
#include "base/text.h"
#include "base/verp.h"
#include "spool/format.h"

#define FILE_MAX (4u << 20)
#define WALL_MAX (INT64_MAX / USEC_PER_SEC)

const char *const hold_rule_keys[RULE_NKEYS] = {
	[RULE_SENDER] = "sender",
	[RULE_RECIPIENT] = "recipient",
	[RULE_DOMAIN] = "domain",
	[RULE_DESTINATION] = "destination",
};

/* ---- one rule ---- */

bool
hold_rule_is_right(const struct hold_rule *rule)
{
	const size_t reason = strlen(rule->reason);
	bool any = false;
	size_t i;

	for (i = 0; i < RULE_NKEYS; i++) {
		const size_t len = strlen(rule->pattern[i]);

		if (len > HOLD_RULE_TEXT_MAX ||
		    !text_is_utf8(rule->pattern[i], len))
			return false;
		any |= len > 0;
	}
	/* The file has seconds, and 0 is no end. */
	return any && rule->since_wall >= 0 &&
	    (rule->until_wall == 0 || rule->until_wall >= USEC_PER_SEC) &&
	    reason <= HOLD_REASON_MAX && text_is_utf8(rule->reason, reason);
}

bool
hold_rule_is_over(const struct hold_rule *rule, usec_t now_wall)
{
	return rule->until_wall != 0 && rule->until_wall <= now_wall;
}

/* ---- reading ---- */

/* The next field of a row; the last one ends the row. */
static char *
cut(char **rest, char end)
{
	char *field = *rest, *stop = strchr(field, end);

	if (stop == NULL)
		return NULL;
	*stop = '\0';
	*rest = stop + 1;
	return field;
}

static bool
take_number(const char *text, uint64_t max, uint64_t *ret)
{
	return text != NULL && num_u64(text, 0, max, ret) == 0;
}

/* NUMBER UID SINCE UNTIL, the patterns, REASON; tabs between. */
static bool
parse_row(char *line, struct hold_rule *rule)
{
	uint64_t n[4];
	const uint64_t max[4] = { UINT32_MAX, UINT32_MAX, WALL_MAX, WALL_MAX };
	size_t i;

	for (i = 0; i < 4; i++)
		if (!take_number(cut(&line, '\t'), max[i], &n[i]))
			return false;
	for (i = 0; i < RULE_NKEYS; i++)
		if ((rule->pattern[i] = cut(&line, '\t')) == NULL)
			return false;
	rule->reason = line;
	rule->number = (uint32_t)n[0];
	rule->uid = (uid_t)n[1];
	rule->since_wall = (usec_t)n[2] * USEC_PER_SEC;
	rule->until_wall = (usec_t)n[3] * USEC_PER_SEC;
	return hold_rule_is_right(rule);
}

static bool
parse_rows(char *text, struct hold_rules *rules)
{
	uint64_t next;
	uint32_t last = 0;
	char *line;

	if (!take_number(cut(&text, '\n'), UINT32_MAX, &next))
		return false;
	rules->next = (uint32_t)next;
	while (*text != '\0') {
		struct hold_rule *row = &rules->rows[rules->count];

		line = cut(&text, '\n');
		if (line == NULL || rules->count == HOLD_RULES_MAX ||
		    !parse_row(line, row) || row->number <= last ||
		    row->number >= rules->next)
			return false;
		last = row->number;
		rules->count++;
	}
	return rules->next > 0;
}

/* The last line is the sum of those before it. */
static bool
cut_sum(struct buf *text)
{
	char sum[16];
	const size_t len = 9; /* 8 digits and a line end */
	size_t rest;

	if (text->len < len + sizeof(HOLD_RULES_HEAD) - 1 ||
	    memchr(text->data, '\0', text->len) != NULL)
		return false;
	rest = text->len - len;
	snprintf(sum, sizeof(sum), "%08" PRIx32 "\n",
	    format_crc(0, text->data, rest));
	if (memcmp(text->data + rest, sum, len) != 0)
		return false;
	text->data[rest] = '\0';
	text->len = rest;
	return true;
}

static int
parse(struct hold_rules *rules)
{
	const size_t first = sizeof(HOLD_RULES_HEAD) - 1;

	rules->rows = calloc(HOLD_RULES_MAX, sizeof(*rules->rows));
	if (rules->rows == NULL)
		return -ENOMEM;
	if (cut_sum(&rules->text) &&
	    memcmp(rules->text.data, HOLD_RULES_HEAD, first) == 0 &&
	    parse_rows(rules->text.data + first, rules))
		return 0;
	rules->count = 0;
	return -EBADMSG;
}

/* The file is believed of root and of the owner of its directory. */
static int
check(int dir, const struct stat *st)
{
	struct stat above;

	if (fstat(dir, &above) < 0)
		return -errno;
	return S_ISREG(st->st_mode) &&
		(st->st_uid == 0 || st->st_uid == above.st_uid) &&
		(st->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
		st->st_size <= FILE_MAX
	    ? 0
	    : -EBADMSG;
}

static int
read_text(int dir, int fd, struct hold_rules *rules)
{
	struct stat st;
	int64_t n;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	rules->seen = st;
	r = check(dir, &st);
	if (r == 0)
		r = buf_reserve(&rules->text, (size_t)st.st_size + 1);
	if (r < 0)
		return r;
	n = io_read_all(fd, rules->text.data, (size_t)st.st_size);
	if (n < 0)
		return (int)n;
	rules->text.len = (size_t)n;
	rules->text.data[n] = '\0';
	return parse(rules);
}

/* A link, or something else in its place, is as a damaged file. */
static int
open_file(const struct spool_sys *sys, int dir, struct hold_rules *rules)
{
	int error,
	    fd = sys->openat(dir, HOLD_RULES_NAME,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

	if (fd >= 0)
		return fd;
	error = errno;
	if (error == ENOENT ||
	    fstatat(dir, HOLD_RULES_NAME, &rules->seen, AT_SYMLINK_NOFOLLOW) <
		0)
		return -error;
	return S_ISREG(rules->seen.st_mode) ? -error : -EBADMSG;
}

int
hold_rules_read_at(
    const struct spool_sys *sys, int dir, struct hold_rules *rules)
{
	int r, fd;

	rules->next = 1;
	fd = open_file(sys, dir, rules);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = read_text(dir, fd, rules);
	io_close(&fd);
	return r;
}

int
hold_rules_open_dir(const struct spool_sys *sys, const char *base, int access)
{
	struct buf path = { 0 };
	int fd, r = buf_printf(&path, "%s/" SPOOL_RULES, base);

	if (r < 0)
		return r;
	fd = sys->openat(AT_FDCWD, buf_str(&path),
	    access | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	buf_done(&path);
	return fd;
}

int
hold_rules_read(
    const struct spool_sys *sys, const char *base, struct hold_rules *ret)
{
	struct hold_rules rules = { .next = 1 };
	int dir = hold_rules_open_dir(sys, base, O_PATH), r;

	r = dir < 0 ? (dir == -ENOENT ? 0 : dir)
		    : hold_rules_read_at(sys, dir, &rules);
	io_close(&dir);
	if (r < 0) {
		const struct stat seen = rules.seen;

		hold_rules_done(&rules);
		ret->seen = seen;
		return r;
	}
	*ret = rules;
	return 0;
}

void
hold_rules_done(struct hold_rules *rules)
{
	free(rules->rows);
	buf_done(&rules->text);
	*rules = (struct hold_rules){ .next = 1 };
}

bool
hold_rules_changed(const char *base, const struct stat *seen)
{
	char path[PATH_MAX];
	struct stat st = { 0 };

	if (snprintf(path, sizeof(path), "%s/" SPOOL_RULES "/" HOLD_RULES_NAME,
		base) >= (int)sizeof(path))
		return false;
	if (lstat(path, &st) < 0)
		return errno == ENOENT && seen->st_ino != 0;
	return st.st_ino != seen->st_ino || st.st_size != seen->st_size ||
	    st.st_mtim.tv_sec != seen->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != seen->st_mtim.tv_nsec;
}

/* ---- does it fit ---- */

static bool
fits_sender(const char *pattern, const char *sender)
{
	return strcmp(pattern, "<>") == 0
	    ? sender[0] == '\0'
	    : pattern[0] == '\0' || sender_matches(pattern, sender);
}

static bool
is_about_sender_alone(const struct hold_rule *rule)
{
	size_t i;

	for (i = RULE_RECIPIENT; i < RULE_NKEYS; i++)
		if (rule->pattern[i][0] != '\0')
			return false;
	return true;
}

bool
hold_rule_fits(
    const struct hold_rule *rule, const struct hold_mail *mail, usec_t now_wall)
{
	const char *const *p = rule->pattern;

	return !hold_rule_is_over(rule, now_wall) &&
	    !(mail->report && is_about_sender_alone(rule)) &&
	    fits_sender(p[RULE_SENDER], mail->sender) &&
	    (p[RULE_RECIPIENT][0] == '\0' ||
		address_matches(p[RULE_RECIPIENT], mail->recipient)) &&
	    (p[RULE_DOMAIN][0] == '\0' ||
		domain_matches(
		    p[RULE_DOMAIN], address_domain(mail->recipient))) &&
	    (p[RULE_DESTINATION][0] == '\0' ||
		(mail->transport != NULL && mail->nexthop != NULL &&
		    destination_matches(
			p[RULE_DESTINATION], mail->transport, mail->nexthop)));
}

const struct hold_rule *
hold_rules_find(const struct hold_rules *rules, const struct hold_mail *mail,
    usec_t now_wall)
{
	uint32_t i;

	for (i = 0; i < rules->count; i++)
		if (hold_rule_fits(&rules->rows[i], mail, now_wall))
			return &rules->rows[i];
	return NULL;
}

const struct hold_rule *
hold_rules_number(
    const struct hold_rules *rules, uint32_t number, usec_t now_wall)
{
	uint32_t i;

	for (i = 0; i < rules->count; i++)
		if (rules->rows[i].number == number)
			return hold_rule_is_over(&rules->rows[i], now_wall)
			    ? NULL
			    : &rules->rows[i];
	return NULL;
}
