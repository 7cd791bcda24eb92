#include "daemon/daemon.h"

#include <event2/event.h>
#include <stdio.h>

#include "base/clock.h"
#include "ipc/msg.h"
#include "log/log.h"

#define EVERY USEC_PER_SEC

static struct {
	int channel;
	struct event *timer;
	usec_t next; /* the earliest time */
	bool waits;
	char text[WORDS_MAX + 1];
} words = { .channel = -1 };

/* Sent on the socket and not through the channel's wire: the order does not
 * matter, and a process that aborts has no loop any more. */
static void
send_now(usec_t now)
{
	const struct msg msg = { .type = MSG_STATUS,
		.u.STATUS = { .text = MSG_S(words.text) } };

	words.next = now + EVERY;
	words.waits = chan_send(words.channel, &msg, -1) == -EAGAIN;
}

static void
send_or_wait(void)
{
	const usec_t now = clock_mono();
	struct timeval tv;

	if (now >= words.next)
		send_now(now);
	if (!words.waits || words.timer == NULL)
		return;
	tv = clock_timeval(words.next - now);
	(void)evtimer_add(words.timer, &tv);
}

void
words_say(const char *text)
{
	if (words.channel < 0)
		return;
	snprintf(words.text, sizeof(words.text), "%s", text);
	words.waits = true;
	send_or_wait();
}

static void
on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg UNUSED)
{
	if (words.waits)
		send_or_wait();
}

static void
on_bug(const char *text)
{
	log_flush();
	words_say(text);
	if (words.waits)
		send_now(clock_mono());
}

void
words_begin(int channel)
{
	words.channel = channel;
	log_watch(words_say);
	base_on_bug(on_bug);
}

void
words_attach(struct event_base *base)
{
	words.timer = evtimer_new(base, on_timer, NULL);
}

void
words_forget(void)
{
	words.channel = -1;
	words.waits = false;
}

void
words_end(void)
{
	log_watch(NULL);
	base_on_bug(NULL);
	if (words.waits)
		send_now(clock_mono());
	if (words.timer != NULL)
		event_free(words.timer);
	words.timer = NULL;
	words_forget();
}
