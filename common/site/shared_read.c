/* Readers map nothing, so a segment that shrinks ends no reader, and lock
 * nothing, so a site may be read half before and half after a change. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "site/shared_parts.h"

/* A copy that is fit to be shown, of any bytes. */
static void
show(char *out, size_t room, const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len && i + 1 < room && s[i] != '\0'; i++)
		out[i] =
		    (unsigned char)s[i] < 0x20 || s[i] == 0x7f ? '?' : s[i];
	out[i] = '\0';
}

static void
see(const struct shared_segment *seg, struct shared_set *set, uint32_t index,
    struct shared_seen *seen)
{
	struct shared_slot *slot = shared_set_slot(seg, set, index);
	const uint32_t *tickets = shared_slot_tickets(seg, slot);
	struct site_view *v = &seen->view;
	uint32_t i;

	memset(seen, 0, sizeof(*seen));
	shared_slot_mend(slot);
	show(seen->name, sizeof(seen->name), slot->name, sizeof(slot->name));
	*v = (struct site_view){
		.window = slot->window.window,
		.busy = shared_slot_busy(seg, slot),
		.success = slot->window.success,
		.failure = slot->window.failure,
		.fail_cohorts = slot->window.fail_cohorts,
		.deaths = slot->deaths,
	};
	v->state = v->busy < v->window ? SITE_ROOM : SITE_FULL;
	if ((set->dead >> index & 1) != 0 && slot->dead_until > clock_mono()) {
		show(seen->why, sizeof(seen->why), slot->why, SITE_WHY_MAX);
		v->state = SITE_DEAD;
		v->dead_since = slot->dead_since;
		v->dead_until = slot->dead_until;
		v->why = seen->why;
	}
	for (i = 0; i < seg->members; i++)
		seen->waiting += tickets[i] != 0;
}

static bool
visit_set(const struct shared_segment *seg, struct shared_set *set,
    bool (*visit)(void *ctx, const struct shared_seen *seen), void *ctx)
{
	struct shared_seen seen;
	uint32_t index;

	for (index = 0; index < SHARED_SET_SLOTS; index++) {
		if (set->hash[index] == 0)
			continue;
		see(seg, set, index, &seen);
		if (!visit(ctx, &seen))
			return false;
	}
	return true;
}

static int
read_sets(int fd, const struct shared_segment *seg, struct shared_set *set,
    bool (*visit)(void *ctx, const struct shared_seen *seen), void *ctx)
{
	uint32_t i;

	for (i = 0; i < seg->sets; i++) {
		int64_t n = io_pread_all(fd, set, seg->set_size,
		    (int64_t)(seg->sets_at + i * seg->set_size));

		if (n < 0)
			return (int)n;
		if (n != (int64_t)seg->set_size)
			return -EBADMSG;
		if (!visit_set(seg, set, visit, ctx))
			break;
	}
	return 0;
}

static int
open_believed(const char *name, uid_t owner)
{
	int r = 0, fd = shm_open(name, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		r = -errno;
	else if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != owner)
		r = -EPERM;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int
shared_read(const char *name, uid_t owner,
    bool (*visit)(void *ctx, const struct shared_seen *seen), void *ctx)
{
	int r, fd = open_believed(name, owner);
	struct shared_segment seg;
	struct shared_set *set;

	if (fd < 0)
		return fd;
	r = shared_segment_read_head(fd, &seg);
	set = r < 0 ? NULL : aligned_alloc(64, seg.set_size);
	if (r == 0)
		r = set == NULL ? -ENOMEM
				: read_sets(fd, &seg, set, visit, ctx);
	free(set);
	close(fd);
	return r;
}
