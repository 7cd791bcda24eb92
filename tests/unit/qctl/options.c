#include "qctl/qctl.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ID "0660DBE6B105A6EF001A9EFE2"

static const struct {
	const char *line; /* words with blanks between */
	int want;
	enum verb verb;
	const char *says;
} rows[] = {
	{ "qctl list", 0, VERB_LIST, "" },
	{ "/usr/bin/qctl --json list sender=a", 0, VERB_LIST, "" },
	{ "qctl show " ID " --content", 0, VERB_SHOW, "" },
	{ "qctl show", -EINVAL, VERB_SHOW, "nothing is selected" },
	{ "qctl shape --senders state=deferred", 0, VERB_SHAPE, "" },
	{ "qctl shape --by uid --json", 0, VERB_SHAPE, "" },
	{ "qctl shape --by", -EINVAL, VERB_SHAPE, "--by needs a value" },
	{ "qctl shape --by size", -EINVAL, VERB_SHAPE,
	    "--by `size': one of domain, sender, sender-domain, uid is "
	    "needed" },
	{ "qctl list --by uid", -EINVAL, VERB_LIST,
	    "--by does not go with list" },
	{ "qctl list --senders", -EINVAL, VERB_LIST,
	    "--senders does not go with list" },
	{ "qctl check --json", -EINVAL, VERB_CHECK, "--json does not go" },
	{ "qctl", -EINVAL, VERB_NONE, "no verb given" },
	{ "qctl \033[2J", -EINVAL, VERB_NONE, "unknown verb `?[2J'" },
	{ "qctl --help", 0, VERB_HELP, "" },
	{ "qctl --version", 0, VERB_VERSION, "" },
	{ "qctl list -x", -EINVAL, VERB_LIST, "unknown option `-x'" },
	{ "mailq", 0, VERB_LIST, "" },
	{ "mailq -Ac -v x", 0, VERB_LIST, "" },
	{ "mailq -qRx.example -q!Sy -qQ -q", 0, VERB_LIST, "" },
	{ "sendmail -q", 0, VERB_ACT, "" },
	{ "sendmail -c f -qI4711", 0, VERB_ACT, "" },
	{ "sendmail -qG", -EINVAL, VERB_ACT, "`-qG': not a request" },
	{ "sendmail x", -EINVAL, VERB_ACT, "`x': not a request" },
	{ "qread", 0, VERB_READ, "" },
	{ "qread -ai -lrtcs", 0, VERB_READ, "" },
	{ "qread -x", -EINVAL, VERB_READ, "unknown option" },
	{ "postqueue -p", 0, VERB_LIST, "" },
	{ "postqueue -j -v", 0, VERB_LIST, "" },
	{ "postqueue -jp", -EINVAL, VERB_LIST, "one of -j and -p" },
	{ "postqueue", -EINVAL, VERB_NONE, "-p lists" },
	{ "postqueue -f", 0, VERB_ACT, "" },
	{ "postqueue -s x.example", 0, VERB_ACT, "" },
	{ "postqueue -i " ID, 0, VERB_ACT, "" },
	{ "postqueue -i x", -EINVAL, VERB_ACT, "`x': not a queue id" },
	{ "postqueue -p -f", -EINVAL, VERB_LIST, "one thing at a time" },
	{ "qctl hold", -EINVAL, VERB_ACT, "nothing is selected" },
	{ "qctl hold ALL --dry-run --yes", 0, VERB_ACT, "" },
	{ "qctl hold ALL --failed", -EINVAL, VERB_ACT, "--failed does not go" },
	{ "qctl hold --rule sender=a domain=b", 0, VERB_ACT, "" },
	{ "qctl hold --rule", -EINVAL, VERB_ACT, "a rule takes sender=" },
	{ "qctl hold --rule ALL", -EINVAL, VERB_ACT, "a rule takes sender=" },
	{ "qctl hold --rule sender=a sender=b", -EINVAL, VERB_ACT, "each" },
	{ "qctl hold --rule queue=1 sender=a", -EINVAL, VERB_ACT, "a rule" },
	{ "qctl hold --rule sender!=a", -EINVAL, VERB_ACT, "a rule takes" },
	{ "qctl hold --rule attempts=2 sender=a", -EINVAL, VERB_ACT,
	    "mail to come has no age, place or attempts" },
	{ "qctl list attempts=2 fewer=5", 0, VERB_LIST, "" },
	{ "qctl delete --rule ALL", -EINVAL, VERB_ACT, "--rule does not go" },
	{ "qctl release --rule 7", 0, VERB_ACT, "" },
	{ "qctl release --rule", -EINVAL, VERB_ACT, "needs the number" },
	{ "qctl release --rule 7 8", -EINVAL, VERB_ACT, "one number" },
	{ "qctl release --rule ALL", -EINVAL, VERB_ACT, "one number" },
	{ "qctl rules --json", 0, VERB_RULES, "" },
	{ "qctl rules ALL", -EINVAL, VERB_RULES, "takes no selection" },
	{ "qctl list rule=7 destination=smtp/mx", 0, VERB_LIST, "" },
	{ "qctl list rule=0", -EINVAL, VERB_LIST, "takes the number" },
	{ "qctl requeue ALL --failed", 0, VERB_ACT, "" },
	{ "qctl list --yes", -EINVAL, VERB_LIST, "--yes does not go" },
	{ "postsuper -h ALL deferred hold", 0, VERB_ACT, "" },
	{ "postsuper -d " ID " -d -", 0, VERB_ACT, "" },
	{ "postsuper -d ALL -h ALL", -EINVAL, VERB_ACT, "one thing" },
	{ "postsuper -d sender=x", -EINVAL, VERB_ACT, "not a queue id" },
	{ "postsuper -d ALL bounce", -EINVAL, VERB_ACT,
	    "`bounce': state takes" },
	{ "postsuper -f ALL", 0, VERB_ACT, "" },
	{ "postsuper -e ALL -f ALL", -EINVAL, VERB_ACT, "one thing" },
	{ "postsuper -p", -EOPNOTSUPP, VERB_NONE, "-p is not supported" },
	{ "postsuper", -EINVAL, VERB_NONE, "-h, -H, -r, -d, -e or -f" },
	{ "qctl expire ALL -f", 0, VERB_ACT, "" },
	{ "qctl hold ALL --for=2h --reason=disk", 0, VERB_ACT, "" },
	{ "qctl hold ALL --for=2y", -EINVAL, VERB_ACT,
	    "`2y': not a time (90s" },
	{ "qctl retry ALL --for=2h", -EINVAL, VERB_ACT, "--for does not go" },
	{ "qctl retry ALL --rate=20/s", 0, VERB_ACT, "" },
	{ "qctl retry ALL --rate x", -EINVAL, VERB_ACT, "`x': not a rate" },
	{ "qctl hold ALL --rate=1", -EINVAL, VERB_ACT, "--rate does not go" },
	{ "qctl spread ALL queue=1 --dry-run --yes", 0, VERB_ACT, "" },
	{ "qctl spread", -EINVAL, VERB_ACT, "nothing is selected" },
	{ "qctl spread ALL --rate=1", -EINVAL, VERB_ACT, "--rate does not go" },
	{ "qctl hold ALL --force", -EINVAL, VERB_ACT, "--force does not go" },
	{ "qctl route x --sender alice", 0, VERB_ROUTE, "" },
	{ "qctl route x --sender <>", 0, VERB_ROUTE, "" },
	{ "qctl route x --sender list-@x-@[]", 0, VERB_ROUTE, "" },
	{ "qctl route x --sender @x", -EINVAL, VERB_ROUTE,
	    "--sender `@x': no address" },
	{ "qctl route x --sender a@", -EINVAL, VERB_ROUTE, "`a@': no address" },
	{ "qctl route x --sender a\nb", -EINVAL, VERB_ROUTE, ": no address" },
	{ "postqueue -p x", -EINVAL, VERB_LIST, "too many arguments" },
};

Test(options, A1_names_and_verbs)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		char line[128], *argv[8], *word;
		struct buf error = { 0 };
		struct options o;
		int argc = 0;

		snprintf(line, sizeof(line), "%s", rows[i].line);
		for (word = line; word != NULL; argc++)
			argv[argc] = strsep(&word, " ");
		argv[argc] = NULL;
		cr_expect_eq(options_parse(argc, argv, &o, &error),
		    rows[i].want, "%s", rows[i].line);
		cr_expect_eq(o.verb, rows[i].verb, "%s", rows[i].line);
		cr_expect_not_null(strstr(buf_str(&error), rows[i].says),
		    "%s: %s", rows[i].line, buf_str(&error));
		select_done(&o.select);
		buf_done(&error);
	}
}

Test(options, help_has_every_key)
{
	struct buf out = { 0 };

	cr_expect_eq(options_help(&out), 0);
	cr_expect_not_null(strstr(buf_str(&out), "  smaller=SIZE"));
	cr_expect_not_null(strstr(buf_str(&out), "  attempts=COUNT"));
	cr_expect_not_null(strstr(buf_str(&out), "  --senders "));
	cr_expect_not_null(strstr(buf_str(&out), "  shape "));
	buf_done(&out);
}
