/* Files that are no mail any more: in corrupt/ the check that they fail, and
 * the ways out; in deleted/ their end. */
#include "qctl/show/explain.h"

#include <string.h>

#include "base/text.h"

/* Adds the commands that help. */
static int
add_ways_out(const char *id, const struct corrupt_parts *parts, struct buf *out)
{
	int r = buf_printf(out,
	    ". It is not delivered. `qctl show --content %s` prints it; ", id);

	if (r == 0 && parts->readable && (parts->content || parts->envelope))
		r = buf_printf(out, "`qctl release --force %s` delivers it%s; ",
		    id, parts->content && parts->envelope ? "" : " as it is");
	return r < 0 ? r
		     : buf_printf(out, "`qctl delete %s` removes it.\n", id);
}

int
damaged_say(const struct message *m, struct buf *out)
{
	struct corrupt_parts parts;
	int r = message_check(m, &parts);
	const char *why =
	    "each check passes now; the log says which one failed";

	if (r < 0)
		return r;
	if (parts.why[0] != '\0')
		why = parts.why;
	r = buf_add_str(out, "    Damaged: ");
	if (r == 0)
		r = text_clean(out, why, strlen(why), CORRUPT_WHY_MAX);
	return r < 0 ? r : add_ways_out(m->id, &parts, out);
}

int
deleted_say(const struct message *m, usec_t now_wall, struct buf *out)
{
	int r = buf_add_str(out,
	    "    Deleted: by an operator; qctl undelete puts it on hold. Next: "
	    "it is removed at ");

	if (r == 0)
		r = sentence_add_time(out, m->due_wall, now_wall);
	return r < 0 ? r : buf_add_str(out, ".\n");
}
