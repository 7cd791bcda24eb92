#include "deliver-local/expand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/io.h"
#include "base/texts.h"

#define DEPTH_MAX      50 /* of aliases and include files in each other */
#define PROGRESS_EVERY 256
#define NO_NODE        UINT32_MAX

/* Keys of the set that are no recipients; no address begins with these. */
#define SEEN_ALIAS     "\001"
#define SEEN_INCLUDE   "\002"
#define SEEN_ACCOUNT   "\003"

/* An alias that was met, below the one that named it. */
struct node {
	uint32_t parent;
	const char *key;
	const struct alias *alias; /* NULL: root or postmaster without one */
};

/* Recipients with one sender: a message. */
struct group {
	uint32_t node;
	char *sender;
};

struct frame {
	uint32_t node;
	uid_t owner; /* of the file that names the members */
	size_t next; /* member of the alias */
	/* of an include file */
	char *path;  /* NULL: an alias */
	bool nested; /* another include file names it */
	struct include_file file;
};

struct expander {
	const struct members_names *names;
	const struct includes *includes;
	const struct members_of *of;
	const struct members_sink *sink;
	struct buf *why;
	struct texts_set seen;
	struct node *nodes;
	struct group *groups;
	size_t nnodes_cap, ngroups_cap;
	uint32_t nnodes, ngroups, nrcpts, steps;
	uint64_t room; /* for bytes of include files */
	bool begun;    /* the message of this group */
	bool looped;
	bool discards;      /* /dev/null is a member */
	const char *sender; /* of this group */
	struct frame *frames;
	uint32_t depth;
};

static PRINTF(3, 4) int fail(
    const struct expander *x, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_reset(x->why);
	(void)buf_vprintf(x->why, fmt, ap);
	va_end(ap);
	return error;
}

/* ---- names ---- */

/* 1: met for the first time. */
static int
meet(struct expander *x, const char *prefix, const char *name)
{
	struct buf key = { 0 };
	int r = buf_printf(&key, "%s%s", prefix, name);

	if (r == 0)
		r = texts_set_add(&x->seen, buf_str(&key));
	buf_done(&key);
	return r;
}

static bool
is_below(const struct expander *x, uint32_t node, const char *key)
{
	for (; node != NO_NODE; node = x->nodes[node].parent)
		if (strcmp(x->nodes[node].key, key) == 0)
			return true;
	return false;
}

static int
add_node(struct expander *x, uint32_t parent, const struct meaning *m)
{
	struct node *nodes =
	    array_room(x->nodes, x->nnodes, &x->nnodes_cap, sizeof(*x->nodes));

	if (nodes == NULL)
		return -ENOMEM;
	x->nodes = nodes;
	nodes[x->nnodes++] = (struct node){ parent, m->key, m->alias };
	return 0;
}

static int
add_group(struct expander *x, uint32_t node, char *sender)
{
	struct group *groups = array_room(
	    x->groups, x->ngroups, &x->ngroups_cap, sizeof(*x->groups));

	if (groups == NULL) {
		free(sender);
		return -ENOMEM;
	}
	x->groups = groups;
	groups[x->ngroups++] = (struct group){ node, sender };
	return 0;
}

/* ---- recipients ---- */

static int
meet_rcpt(struct expander *x, const char *address, bool is_account)
{
	char key[ADDRESS_FOLDED_MAX + 1];

	return meet(x,
	    names_rcpt_key(address, is_account, key) ? SEEN_ACCOUNT : "", key);
}

static int
add_rcpt(struct expander *x, const char *address, bool is_account)
{
	int r = meet_rcpt(x, address, is_account);

	if (r <= 0)
		return r;
	if (x->nrcpts == x->names->limit)
		return fail(x, -E2BIG,
		    "more than %u recipients (alias_expansion_limit)",
		    x->names->limit);
	x->nrcpts++;
	r = x->begun ? 0 : x->sink->sender(x->sink->arg, x->sender);
	x->begun = true;
	return r < 0 ? r : x->sink->rcpt(x->sink->arg, address);
}

/* ---- frames ---- */

static int
push(struct expander *x, uint32_t node, uid_t owner)
{
	struct frame *f = &x->frames[x->depth];

	if (x->depth == DEPTH_MAX)
		return fail(x, -ELOOP, "names within names, more than %d deep",
		    DEPTH_MAX);
	*f = (struct frame){ .node = node, .owner = owner };
	f->file.fd = -1;
	x->depth++;
	return 0;
}

static void
pop(struct expander *x)
{
	struct frame *f = &x->frames[--x->depth];

	include_end(&f->file);
	free(f->path);
}

static uid_t
alias_file_owner(const struct expander *x)
{
	return x->names->aliases == NULL ? 0 : alias_owner(x->names->aliases);
}

static int
push_alias(struct expander *x, uint32_t node)
{
	return push(x, node, alias_file_owner(x));
}

static int
bad_include(const struct expander *x, const struct frame *f, const char *what)
{
	return fail(x, -EUCLEAN, "include file %s: line %u: %s", f->path,
	    f->file.line, what);
}

/* A frame of the file fd, which the frame owns. */
static int
push_file(
    struct expander *x, uint32_t node, uid_t owner, int fd, const char *path)
{
	struct frame *f = &x->frames[x->depth];
	int r = push(x, node, owner);

	if (r < 0) {
		io_close(&fd);
		return r;
	}
	include_begin(&f->file, fd);
	f->path = strdup(path);
	if (!include_fits(&f->file, &x->room))
		return fail(x, -E2BIG,
		    "include file %s: too large for %u recipients", path,
		    x->names->limit);
	return f->path == NULL ? -ENOMEM : 0;
}

static int
push_include(struct expander *x, const struct frame *from, const char *path)
{
	struct buf why = { 0 };
	uid_t owner = 0;
	int fd = includes_open(x->includes, path, from->owner, &owner, &why);
	int r;

	if (fd < 0)
		r = fail(x, fd == -ENOMEM ? fd : -EUCLEAN,
		    "include file %s: %s", path, buf_str(&why));
	else
		r = push_file(x, from->node, owner, fd, path);
	if (r == 0)
		x->frames[x->depth - 1].nested = from->path != NULL;
	buf_done(&why);
	return r;
}

static int
push_forward(struct expander *x, struct forward *forward)
{
	const int fd = forward->fd;

	forward->fd = -1;
	return push_file(x, 0, forward->uid, fd, forward->path);
}

/* ---- the members of a frame ---- */

/* 1: *ret is the next one; 0: there is none. */
static int
next_member(const struct expander *x, struct frame *f, struct alias_member *ret)
{
	const struct alias *alias = x->nodes[f->node].alias;
	const char *why = "";
	int r;

	if (f->path != NULL) {
		r = include_next(&f->file, ret, &why);
		return r < 0 && r != -ENOMEM ? bad_include(x, f, why) : r;
	}
	if (alias == NULL) {
		*ret = (struct alias_member){ ALIAS_ADDRESS,
			x->names->admin_recipient };
		return f->next++ == 0;
	}
	if (f->next == alias->nmembers)
		return 0;
	*ret = alias->members[f->next++];
	return 1;
}

/* ---- kinds of members ---- */

/* An alias with a wrong line waits until the line is mended. */
static int
judge_alias(const struct expander *x, const struct alias *alias)
{
	if (alias == NULL || alias->wrong == NULL)
		return 0;
	return fail(x, -EUCLEAN, "%s: line %u of the alias file: %s",
	    alias->key, alias->wrong_line, alias->wrong);
}

/* A new alias: its members come here, or into a message of their own. The first
 * one has no parent, and always a message. */
static int
enter(struct expander *x, uint32_t parent, const struct meaning *m,
    const char *address)
{
	const uint32_t node = x->nnodes;
	char *sender = NULL;
	int r = judge_alias(x, m->alias);

	if (r == 0)
		r = add_node(x, parent, m);
	if (r == 0)
		r = names_owner(x->names, m, address, x->of->sender, &sender);
	if (r < 0)
		return r;
	return sender == NULL && parent != NO_NODE ? push_alias(x, node)
						   : add_group(x, node, sender);
}

static int
take_address(struct expander *x, const struct frame *f, const char *text)
{
	char address[2 * ADDRESS_MAX];
	struct meaning m;
	int n = snprintf(address, sizeof(address), "%s%s%s", text,
	    address_domain(text)[0] == '\0' ? "@" : "",
	    address_domain(text)[0] == '\0' ? x->names->mydomain : "");
	int r = n < 0 ? -EINVAL : address_check(address, (size_t)n);

	if (r < 0)
		return fail(x, -EUCLEAN, "member %s: not an address", text);
	m = names_look_up(x->names, address);
	if (!m.is_alias)
		return add_rcpt(x, address, m.is_account);
	if (is_below(x, f->node, m.key))
		return add_rcpt(x, address, m.is_account);
	r = meet(x, SEEN_ALIAS, m.key);
	x->looped |= r == 0;
	if (r <= 0)
		return r;
	/* The other recipients get their mail; this one is refused by itself.
	 */
	return alias_refuses(m.alias) ? add_rcpt(x, address, false)
				      : enter(x, f->node, &m, address);
}

/* A program or a mailbox becomes a recipient that names it, and the include
 * file that it stands in. */
static int
take_instruction(struct expander *x, const struct frame *f,
    const struct alias_member *member)
{
	const char *mark = member->kind == ALIAS_PROGRAM ? "|" : "";
	const char *text = member->text;
	char rcpt[2 * ADDRESS_MAX + PATH_MAX];
	int n;

	/* alias.c looks for an instruction in the table, and in files that the
	 * table names. */
	if (f->nested)
		return bad_include(x, f,
		    "a program or a mailbox in a file that the alias file does "
		    "not name");
	if (f->path == NULL)
		n = snprintf(rcpt, sizeof(rcpt), "%s%s", mark, text);
	else if (f == x->frames && x->of->forward != NULL)
		n = snprintf(rcpt, sizeof(rcpt), FORWARD_PREFIX "%s:%s%s",
		    x->of->key, mark, text);
	else
		n = snprintf(rcpt, sizeof(rcpt), ALIAS_INCLUDE_PREFIX "%s:%s%s",
		    f->path, mark, text);
	if (n < 0 || address_check(rcpt, (size_t)n) < 0)
		return fail(x, -EUCLEAN, "member %s%s: too long", mark, text);
	return add_rcpt(x, rcpt, false);
}

static int
take_refusal(struct expander *x, const struct frame *f UNUSED, const char *text)
{
	return fail(x, -ECONNREFUSED, "%s", text);
}

static int
take_include(struct expander *x, const struct frame *f, const char *path)
{
	int r = meet(x, SEEN_INCLUDE, path);

	return r <= 0 ? r : push_include(x, f, path);
}

static int
take_nothing(
    struct expander *x, const struct frame *f UNUSED, const char *text UNUSED)
{
	x->discards = true;
	return 0;
}

/* NULL: an instruction. */
static int (*const take[])(
    struct expander *x, const struct frame *f, const char *text) = {
	[ALIAS_ADDRESS] = take_address,
	[ALIAS_INCLUDE] = take_include,
	[ALIAS_NOTHING] = take_nothing,
	[ALIAS_REFUSAL] = take_refusal,
};

static int
step(struct expander *x)
{
	struct frame *f = &x->frames[x->depth - 1];
	struct alias_member member;
	int r = next_member(x, f, &member);

	if (r == 0)
		pop(x);
	else if (r > 0 && take[member.kind] == NULL)
		r = take_instruction(x, f, &member);
	else if (r > 0)
		r = take[member.kind](x, f, member.text);
	if (r >= 0 && x->sink->progress != NULL &&
	    x->steps++ % PROGRESS_EVERY == 0)
		r = x->sink->progress(x->sink->arg);
	return r < 0 ? r : 0;
}

/* ---- all of it ---- */

static int
begin(struct expander *x)
{
	const struct members_names *names = x->names;
	struct meaning m = { .alias =
				 alias_find_key(names->aliases, x->of->key) };
	int r;

	if (x->of->forward != NULL) {
		m = (struct meaning){ .key = x->of->key };
		r = add_node(x, NO_NODE, &m);
		return r < 0 ? r : add_group(x, 0, NULL);
	}
	m.key = m.alias != NULL ? m.alias->key : names_admin(x->of->key);
	if (m.key == NULL ||
	    (m.alias == NULL && names->admin_recipient[0] == '\0'))
		return fail(x, -ENOENT, "there is no alias %s", x->of->key);
	r = meet(x, SEEN_ALIAS, m.key);
	return r < 0 ? r : enter(x, NO_NODE, &m, x->of->recipient);
}

static int
run_group(struct expander *x, const struct group *g)
{
	int r;

	x->begun = false;
	x->sender = g->sender != NULL ? g->sender : x->of->sender;
	r = g->node == 0 && x->of->forward != NULL
	    ? push_forward(x, x->of->forward)
	    : push_alias(x, g->node);
	while (r == 0 && x->depth > 0)
		r = step(x);
	return r;
}

static void
done(struct expander *x)
{
	uint32_t i;

	while (x->depth > 0)
		pop(x);
	for (i = 0; i < x->ngroups; i++)
		free(x->groups[i].sender);
	free(x->groups);
	free(x->nodes);
	free(x->frames);
	texts_set_done(&x->seen);
}

int
members_expand(const struct members_names *names, const struct includes *in,
    const struct members_of *of, const struct members_sink *sink,
    struct buf *ret_why)
{
	struct expander x = { .names = names,
		.includes = in,
		.of = of,
		.sink = sink,
		.room = include_room(names->limit),
		.why = ret_why };
	struct group g;
	uint32_t i;
	int r;

	x.frames = calloc(DEPTH_MAX, sizeof(*x.frames));
	r = x.frames == NULL ? -ENOMEM : begin(&x);
	for (i = 0; r == 0 && i < x.ngroups; i++) {
		g = x.groups[i]; /* the array moves when it grows */
		r = run_group(&x, &g);
	}
	if (r == 0 && x.nrcpts == 0 && x.looped)
		r = fail(&x, -ELOOP, "names name each other, and nobody else");
	/* A list may be empty for the moment in which it is written anew. */
	else if (r == 0 && x.nrcpts == 0 && !x.discards)
		r = fail(&x, -EUCLEAN, "no member, and no /dev/null");
	done(&x);
	return r;
}
