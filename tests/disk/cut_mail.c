/* D12: the power goes while mail is being accepted. */
#include "cut.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"

#define CONTENT_MAX 160000

static void
fill(char content[CONTENT_MAX], const struct stamp *stamp)
{
	uint64_t x = 88172645463325252u ^ (uint64_t)stamp->cut << 40 ^
	    (uint64_t)stamp->writer << 32 ^ stamp->seq;
	uint32_t i;

	memcpy(content, stamp, sizeof(*stamp));
	for (i = sizeof(*stamp); i < stamp->len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		content[i] = (char)x;
	}
}

/* Mostly of one block or some, now and then more than the writer buffers. */
static uint32_t
length_of(const struct stamp *stamp)
{
	uint32_t len = (stamp->seq * 2654435761u + stamp->writer * 977) % 12000;

	if (stamp->seq % 32 == 31)
		len += 140000;
	return (uint32_t)sizeof(*stamp) + len;
}

static void
write_mail(struct trial *t, uint32_t writer)
{
	static char content[CONTENT_MAX];
	const struct accept_options opt = { .dir = SPOOL_INCOMING,
		.strict = t->test->strict };
	struct ack ack = { .stamp = { .cut = t->cut, .writer = writer } };
	struct spool sp;

	if (writer == CUT_WRITERS ||
	    spool_open(&sp, t->test->sys, t->base, 1) < 0)
		return;
	while (atomic_load(&t->book->nacks) < CUT_ACKS_MAX) {
		ack.stamp.len = length_of(&ack.stamp);
		fill(content, &ack.stamp);
		if (queue_put(&sp, &opt, content, ack.stamp.len, &ack.id) < 0)
			break;
		cut_note(t->book, &ack);
		ack.stamp.seq++;
	}
}

/* Is it the very message? The checksum has been compared already. */
static bool
is_stamped(const struct spool *sp, uint64_t inode,
    const struct queue_file *file, const struct stamp *want)
{
	static char content[CONTENT_MAX], expected[CONTENT_MAX];
	struct stamp stamp;
	bool same = false;
	int fd = spool_open_file(sp, SPOOL_INCOMING, inode, O_RDONLY);

	if (fd >= 0 && file->content_len >= sizeof(stamp) &&
	    file->content_len <= CONTENT_MAX &&
	    io_pread_all(fd, content, file->content_len,
		(int64_t)file->content_off) == (int64_t)file->content_len) {
		memcpy(&stamp, content, sizeof(stamp));
		if (stamp.len == file->content_len) {
			fill(expected, &stamp);
			same = memcmp(content, expected, stamp.len) == 0 &&
			    (want == NULL ||
				memcmp(&stamp, want, sizeof(stamp)) == 0);
		}
	}
	io_close(&fd);
	return same;
}

static void
judge_accepted(struct trial *t, const struct spool *sp)
{
	unsigned i, n = atomic_load(&t->book->nacks), lost = 0;
	struct queue_file file;

	if (n > CUT_ACKS_MAX)
		n = CUT_ACKS_MAX;
	for (i = 0; i < n; i++) {
		const struct ack *ack = &t->book->acks[i];

		if (queue_look(sp, ack->id.inode, &file) < 0 ||
		    file.arrival_wall != ack->id.arrival_wall ||
		    file.nonce != ack->id.nonce ||
		    !is_stamped(sp, ack->id.inode, &file, &ack->stamp))
			lost++;
	}
	t->tally.accepted += n;
	t->tally.lost += lost;
	t->tally.lossy_cuts += lost > 0;
	t->tally.late += atomic_load(&t->book->late);
}

/* Whatever has a name is a whole message, or is told to be none. Number of
 * those that are neither. */
static unsigned
judge_names(struct trial *t, const struct spool *sp)
{
	struct spool_scan scan;
	struct spool_item item;
	struct queue_file file;
	unsigned wrong = 0;
	int r;

	spool_scan_begin(&scan, sp, SPOOL_INCOMING);
	while (spool_scan_next(&scan, false, &item) != 0) {
		r = queue_look(sp, item.inode, &file);
		t->tally.named++;
		if (r == -EBADMSG)
			t->tally.torn++;
		else if (r < 0 || !is_stamped(sp, item.inode, &file, NULL))
			wrong++;
		spool_remove(sp, SPOOL_INCOMING, item.inode);
	}
	spool_scan_done(&scan);
	return wrong;
}

static unsigned
judge_mail(struct trial *t, const struct spool *sp)
{
	judge_accepted(t, sp);
	return judge_names(t, sp);
}

const struct cut_script cut_mail = { write_mail, judge_mail };
