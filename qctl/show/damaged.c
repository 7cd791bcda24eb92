/* Files that are no mail any more: in corrupt/ the check that they fail, and
 * the ways out; in deleted/ their end. */
#include "qctl/show/explain.h"

int
damaged_say(const struct message *m, struct out *out)
{
	struct corrupt_parts parts;
	int r = message_check(m, &parts);

	if (r < 0)
		return r;
	out_str(out, "    Damaged: ");
	out_clean(out,
	    parts.why[0] != '\0'
		? parts.why
		: "each check passes now; the log says which one failed",
	    CORRUPT_WHY_MAX);
	out_printf(out,
	    ". It is not delivered. `qctl show --content %s` prints it; ",
	    m->id);
	if (parts.readable && (parts.content || parts.envelope))
		out_printf(out, "`qctl release --force %s` delivers it%s; ",
		    m->id, parts.content && parts.envelope ? "" : " as it is");
	out_printf(out, "`qctl delete %s` removes it.\n", m->id);
	return 0;
}

void
deleted_say(const struct message *m, usec_t now_wall, struct out *out)
{
	out_str(out,
	    "    Deleted: by an operator; qctl undelete puts it on hold. Next: "
	    "it is removed at ");
	sentence_add_time(out, m->due_wall, now_wall);
	out_str(out, ".\n");
}
