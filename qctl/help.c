/* qctl --help. */
#include "qctl/qctl.h"

static const struct {
	const char *verbs, *help;
} verbs[] = {
	{ "list", "a row for each message, as postqueue -p" },
	{ "show", "the envelope and the last replies of messages" },
	{ "explain", "why messages wait, and what happens next" },
	{ "sites", "destinations: windows, deaths, queues that wait" },
	{ "shares", "what each user has in the queues, beside the limits" },
	{ "trace", "follow the dialogues with a destination or a server" },
	{ "shape",
	    "how much mail waits, by domain, sender or user, and by\n"
	    "                      "
	    "age in minutes" },
	{ "hold, release", "put messages on hold; make them due at once" },
	{ "requeue", "make messages due at once, also those on hold" },
	{ "delete, undelete",
	    "delete messages; within a day, put deleted\n"
	    "                      "
	    "messages on hold" },
	{ "retry", "make deferred messages due at once" },
	{ "expire",
	    "try messages once more, then return them to their\n"
	    "                      "
	    "senders" },
	{ "spread",
	    "move waiting messages from full queues to queues with\n"
	    "                      "
	    "room" },
	{ "check", "look for damage in the spool" },
	{ "rules", "list the rules made by hold --rule" },
	{ "route", "show where mail for an address goes" },
};

int
options_help(struct buf *out)
{
	size_t i;

	buf_add_str(out,
	    "usage: qctl VERB [OPTION ...] [SELECTION ...]\n\n"
	    "Show the messages in the queues, and act on them.\n\n");
	for (i = 0; i < ARRAY_LEN(verbs); i++)
		buf_printf(out, "  %-19s %s\n", verbs[i].verbs, verbs[i].help);
	buf_add_str(out, "\nOPTION\n");
	(void)options_help_rows(out);
	buf_add_str(out,
	    "\nSELECTION: message ids, - (ids from standard input), "
	    "ALL, or filters.\nA message is selected when every "
	    "filter fits. Where a filter is given several\ntimes, "
	    "one of its values must fit.\n");
	return select_help(out);
}
