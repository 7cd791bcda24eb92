#include "spool/hold_note.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/num.h"
#include "spool/reason.h"

/* No recipient has this index, so readers of reasons pass over the line. */
#define NOTE_INDEX UINT32_MAX
#define NOTE_CODE  "hold"

static void
cut_to(const struct spool *sp, uint64_t inode, off_t size)
{
	int fd = spool_open_name(sp, SPOOL_DEFER, inode, O_WRONLY);

	if (fd < 0)
		return;
	(void)sp->sys->ftruncate(fd, size);
	(void)sp->sys->close(fd);
}

void
hold_note_undo(const struct spool *sp, uint64_t inode,
    const struct hold_note_before *before)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		before->changed };
	char leaf[SPOOL_PATH_MAX];

	if (!before->there) {
		(void)reason_clear(sp, SPOOL_DEFER, inode);
		return;
	}
	cut_to(sp, inode, before->size);
	spool_leaf(sp, SPOOL_DEFER, inode, leaf, sizeof(leaf));
	(void)sp->sys->utimensat(
	    sp->dir[SPOOL_DEFER], leaf, times, AT_SYMLINK_NOFOLLOW);
}

int
hold_note_write(const struct spool *sp, const struct queue_id *id,
    const struct hold_note *note, struct hold_note_before *ret_before)
{
	char text[QUEUE_ID_SIZE], who[64];
	const struct reason line = {
		.index = NOTE_INDEX,
		.when_wall = note->since_wall,
		.dsn = NOTE_CODE,
		.relay = who,
		.address = text,
		.text = note->reason,
	};
	struct stat st;
	int r;

	queue_id_format(id, text);
	snprintf(who, sizeof(who), "%" PRIu32 "/%" PRId64 "/%" PRIu32,
	    (uint32_t)note->uid, note->until_wall / USEC_PER_SEC, note->rule);
	*ret_before = (struct hold_note_before){ 0 };
	if (spool_stat(sp, SPOOL_DEFER, id->inode, &st) == 0)
		*ret_before =
		    (struct hold_note_before){ true, st.st_size, st.st_mtim };
	r = reason_add(sp, SPOOL_DEFER, id->inode, &line);
	if (r < 0)
		hold_note_undo(sp, id->inode, ret_before);
	return r;
}

/* Without room for a note the old one goes, with all reasons. */
void
hold_note_renew(const struct spool *sp, const struct queue_id *id, uid_t uid,
    usec_t now_wall)
{
	const struct hold_note note = { .uid = uid, .since_wall = now_wall };
	struct hold_note_before before;

	if (hold_note_write(sp, id, &note, &before) < 0)
		(void)reason_clear(sp, SPOOL_DEFER, id->inode);
}

struct reading {
	const char *id;
	struct hold_note *note;
	bool found;
};

/* UID/UNTIL/RULE. */
static bool
parse_who(const char *relay, struct hold_note *note)
{
	const uint64_t max[3] = { UINT32_MAX, INT64_MAX / USEC_PER_SEC,
		UINT32_MAX };
	uint64_t n[3] = { 0 };
	char who[64], *rest = who, *field;
	size_t i;

	if (snprintf(who, sizeof(who), "%s", relay) >= (int)sizeof(who))
		return false;
	for (i = 0; i < 3 && (field = strsep(&rest, "/")) != NULL; i++)
		if (num_u64(field, 0, max[i], &n[i]) < 0)
			return false;
	note->uid = (uid_t)n[0];
	note->until_wall = (usec_t)n[1] * USEC_PER_SEC;
	note->rule = (uint32_t)n[2];
	return i == 3 && rest == NULL;
}

static int
take_line(const struct reason *line, void *arg)
{
	struct reading *r = arg;

	if (line->index != NOTE_INDEX || strcmp(line->dsn, NOTE_CODE) != 0 ||
	    strcmp(line->address, r->id) != 0 ||
	    !parse_who(line->relay, r->note))
		return 0;
	r->note->since_wall = line->when_wall;
	snprintf(r->note->reason, sizeof(r->note->reason), "%s", line->text);
	r->found = true;
	return 0;
}

int
hold_note_read(const struct spool *sp, const struct queue_id *id,
    struct hold_note *ret_note)
{
	char text[QUEUE_ID_SIZE];
	struct hold_note note = { 0 };
	struct reading reading = { .id = text, .note = &note };
	int r;

	queue_id_format(id, text);
	r = reason_read(sp, SPOOL_DEFER, id->inode, take_line, &reading);
	if (r < 0 || !reading.found)
		return r < 0 ? r : -ENOENT;
	*ret_note = note;
	return 0;
}
