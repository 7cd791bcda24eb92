#include "expand.h"

#include <criterion/criterion.h>
#include <string.h>

#include "scratch.h"

void
names_begin(struct names_scratch *n, const char *aliases, const char *admin)
{
	static const struct route_transport transports[] = {
		{ .name = "smtp", .target = ROUTE_TO_HOST },
		{ .name = "local", .target = ROUTE_TO_ACCOUNT },
		{ .name = "alias", .target = ROUTE_TO_ALIAS },
		{ .name = NULL },
	};
	struct alias_table *table = NULL;
	struct buf error = { 0 };
	int r = alias_load(
	    scratch_file("aliases", aliases, strlen(aliases)), &table, &error);

	cr_assert_geq(r, 0, "%s", buf_str(&error));
	buf_done(&error);
	*n = (struct names_scratch){ .routes = route_empty() };
	cr_assert_not_null(n->routes);
	cr_assert_eq(
	    route_set_defaults(n->routes, "one.test", "relay.test", transports),
	    0);
	route_set_aliases(n->routes, &table, admin[0] != '\0', transports);
	n->names = (struct members_names){ .routes = n->routes,
		.aliases = route_aliases(n->routes),
		.mydomain = "one.test",
		.admin_recipient = admin,
		.limit = 1000 };
	cr_assert_eq(includes_begin(&n->includes, true), 0);
}

void
names_done(struct names_scratch *n)
{
	includes_done(&n->includes);
	route_free(&n->routes);
	scratch_done();
}
