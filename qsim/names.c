#include "qsim/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"

struct names_node {
	RB_ENTRY(names_node) tree;
	const char *name; /* the destination's */
	uint32_t transport, index;
};

static int
compare(const struct names_node *a, const struct names_node *b)
{
	if (a->transport != b->transport)
		return a->transport < b->transport ? -1 : 1;
	return strcasecmp(a->name, b->name);
}
TREE_GENERATE(names_tree, names_node, tree, compare)

void
names_init(struct names *names)
{
	*names = (struct names){ 0 };
	RB_INIT(&names->tree);
}

int
names_transport(struct names *names, const char *name, bool *ret_new,
    uint32_t *ret_transport)
{
	uint32_t i = 0;

	while (
	    i < names->ntransports && strcmp(names->transports[i], name) != 0)
		i++;
	if (i == CONF_TRANSPORTS_LISTED_MAX)
		return -ENOSPC;
	*ret_new = i == names->ntransports;
	if (*ret_new) {
		names->transports[i] = strdup(name);
		if (names->transports[i] == NULL)
			return -ENOMEM;
		names->ntransports++;
	}
	*ret_transport = i;
	return 0;
}

static int
add_destination(struct names *names, uint32_t transport, const char *name)
{
	struct scenario_destination *rows = array_room(names->destinations,
	    names->ndestinations, &names->cap, sizeof(*rows));
	struct names_node *node;
	char *copy;

	if (rows == NULL)
		return -ENOMEM;
	names->destinations = rows;
	node = malloc(sizeof(*node));
	copy = strdup(name);
	if (node == NULL || copy == NULL) {
		free(node);
		free(copy);
		return -ENOMEM;
	}
	rows[names->ndestinations] = (struct scenario_destination){
		.name = copy,
		.transport = transport,
		.duration = -1,
		.refuse = UINT32_MAX,
	};
	*node = (struct names_node){
		.name = copy,
		.transport = transport,
		.index = names->ndestinations++,
	};
	RB_INSERT(names_tree, &names->tree, node);
	return 0;
}

int
names_destination(struct names *names, uint32_t transport, const char *name,
    uint32_t *ret_destination)
{
	struct names_node wanted = { .name = name, .transport = transport };
	const struct names_node *found =
	    RB_FIND(names_tree, &names->tree, &wanted);
	int r;

	if (found != NULL) {
		*ret_destination = found->index;
		return 0;
	}
	r = add_destination(names, transport, name);
	if (r == 0)
		*ret_destination = names->ndestinations - 1;
	return r;
}

void
names_take(struct names *names, struct scenario_destination **ret_destinations,
    uint32_t *ret_count)
{
	*ret_destinations = names->destinations;
	*ret_count = names->ndestinations;
	names->destinations = NULL;
	names->ndestinations = 0;
}

void
names_done(struct names *names)
{
	struct names_node *node, *next;
	uint32_t i;

	RB_FOREACH_SAFE (node, names_tree, &names->tree, next) {
		RB_REMOVE(names_tree, &names->tree, node);
		free(node);
	}
	for (i = 0; i < names->ntransports; i++)
		free(names->transports[i]);
	for (i = 0; i < names->ndestinations; i++)
		free(names->destinations[i].name);
	free(names->destinations);
	names_init(names);
}
