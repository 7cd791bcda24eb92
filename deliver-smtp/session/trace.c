#include "deliver-smtp/session/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/domain.h"
#include "route/nexthop.h"
#include "smtp/smtp.h"

static struct trace *
trace_find(struct traces *t, uint64_t number)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		if (t->list[i].number == number)
			return &t->list[i];
	return NULL;
}

static void
traces_drop_ended(struct traces *t, usec_t now)
{
	size_t i = 0;

	while (i < t->count)
		if (t->list[i].until > now)
			i++;
		else
			t->list[i] = t->list[--t->count];
}

void
traces_set(struct traces *t, uint64_t number, const char *pattern,
    uint32_t seconds, usec_t now)
{
	struct trace *trace = trace_find(t, number);

	if (trace == NULL) {
		traces_drop_ended(t, now);
		if (seconds == 0 || t->count == TRACES_MAX)
			return;
		trace = &t->list[t->count++];
	}
	*trace = (struct trace){ .number = number,
		.until = now + seconds * USEC_PER_SEC };
	snprintf(trace->pattern, sizeof(trace->pattern), "%s", pattern);
	traces_drop_ended(t, now);
}

/* relay: "host[address]:port", "[address]:port", a path, or "". */
static bool
trace_fits_relay(const struct trace *t, const char *relay)
{
	char host[NEXTHOP_PEER_MAX], *bracket, *end;

	snprintf(host, sizeof(host), "%s", relay);
	bracket = strchr(host, '[');
	if (bracket != NULL)
		*bracket = '\0';
	if (host[0] != '\0' && domain_matches(t->pattern, host))
		return true;
	if (bracket == NULL || (end = strchr(bracket + 1, ']')) == NULL)
		return false;
	*end = '\0';
	return domain_matches(t->pattern, bracket + 1);
}

static bool
trace_fits(
    const struct trace *t, const struct agent_delivery *d, const char *relay)
{
	return destination_matches(t->pattern, d->transport, d->nexthop) ||
	    (d->site != NULL &&
		destination_matches(t->pattern, d->transport, d->site)) ||
	    trace_fits_relay(t, relay);
}

/* Has the trace sent as many lines in this second as it may? */
static bool
trace_is_spent(struct trace *t, usec_t now)
{
	if (now - t->second >= USEC_PER_SEC) {
		t->second = now;
		t->lines = 0;
	}
	return t->lines >= TRACE_RATE;
}

static void
trace_send(struct trace *t, const struct agent_delivery *d, usec_t now,
    const struct agent_trace_line *line)
{
	const usec_t wall = clock_wall();
	struct agent_trace_line gap = *line;
	char text[64];

	if (trace_is_spent(t, now)) {
		t->left_out++;
		return;
	}
	if (t->left_out > 0) {
		gap.who = TRACE_EVENT;
		gap.len = (size_t)snprintf(text, sizeof(text),
		    "%" PRIu64 " lines left out", t->left_out);
		gap.text = text;
		if (!agent_trace(d->agent, t->number, wall, &gap)) {
			t->left_out++;
			return;
		}
		t->left_out = 0;
	}
	t->lines++;
	if (!agent_trace(d->agent, t->number, wall, line))
		t->left_out++;
}

static void
trace_send_lines(struct trace *t, const struct agent_delivery *d, usec_t now,
    struct agent_trace_line line)
{
	const char *end = line.text + line.len, *at, *next;

	for (at = line.text; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (next == NULL)
			next = end;
		line.text = at;
		line.len = (size_t)(next - at);
		if (line.len > 0 && at[line.len - 1] == '\r')
			line.len--;
		trace_send(t, d, now, &line);
	}
}

void
traces_tell_at(struct traces *t, usec_t now, const struct agent_delivery *d,
    const char *relay, enum trace_who who, const char *text, size_t len)
{
	const struct agent_trace_line line = { who, d->id, relay, text, len };
	size_t i;

	if (d->agent == NULL)
		return;
	for (i = 0; i < t->count; i++)
		if (t->list[i].until > now && trace_fits(&t->list[i], d, relay))
			trace_send_lines(&t->list[i], d, now, line);
}

void
traces_tell(struct traces *t, const struct agent_delivery *d, const char *relay,
    enum trace_who who, const char *text)
{
	if (t->count > 0)
		traces_tell_at(
		    t, clock_mono(), d, relay, who, text, strlen(text));
}

void
traces_tell_words(struct traces *t, const struct agent_delivery *d,
    const char *relay, unsigned code, const char *text, size_t len)
{
	struct buf lines = { 0 };

	if (t->count == 0)
		return;
	if (code > 0 && smtp_reply_lines(code, text, len, &lines) == 0) {
		text = buf_str(&lines);
		len = lines.len;
	}
	traces_tell_at(t, clock_mono(), d, relay,
	    code > 0 ? TRACE_SERVER : TRACE_WE, text, len);
	buf_done(&lines);
}
