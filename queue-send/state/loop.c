#include "queue-send/state/send.h"

#include "base/clock.h"
#include "base/num.h"
#include "log/log.h"

static void
check_for_jump(struct send *s, usec_t boot)
{
	const usec_t jump = jumps_find(&s->jumps, s->now_wall, boot);
	struct buf text = { 0 };

	if (jump == 0)
		return;
	s->clock_at = s->now;
	(void)num_add_span(&text, jump < 0 ? -jump : jump);
	log_warning("ALERT: the clock was set %s by %s: messages do not age "
		    "by it",
	    jump < 0 ? "back" : "forward", buf_str(&text));
	buf_done(&text);
}

void
send_read_clocks(struct send *s)
{
	const usec_t boot = clock_boot();

	s->now = clock_mono();
	s->now_wall = clock_wall();
	/* A process that was stopped between two readings proves nothing. */
	if (clock_boot() - boot < JUMPS_LEAST / 4)
		check_for_jump(s, boot);
}

void
send_wake(struct send *s)
{
	turn_kick(&s->turn);
}

bool
message_is_hopeless(const struct send *s, const struct message *m)
{
	const usec_t age =
	    jumps_age(&s->jumps, m->file.arrival_wall, s->now_wall);

	return s->now >= s->expire_after &&
	    retry_is_hopeless(&s->retry, age, m->sender[0] == '\0');
}
