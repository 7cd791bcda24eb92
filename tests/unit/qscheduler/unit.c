/* The sandbox of the unit, by the text of `systemctl show`. */
#include "qscheduler/supervisor/supervisor.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#define HEAD                                                      \
	"ExecStart={ path=/usr/sbin/qscheduler ; argv[]=x -s }\n" \
	"Environment=\nLoadState=loaded\nActiveState=inactive\n"  \
	"UnitFileState=enabled\n"
#define STRICT HEAD "ProtectSystem=strict\nProtectHome=yes\n"
#define OPEN   "ReadWritePaths=-/var/qscheduler -/var/mail\n"

/* mutation: qscheduler/supervisor/unit.c: unit_closed() knows no "strict". */
Test(unit, F12_the_place_of_the_queue_in_the_sandbox)
{
	static const struct {
		const char *name, *shown, *conf, *base;
		int want;
	} rows[] = {
		{ "the place of the package", STRICT OPEN, CONF_DEFAULT_FILE,
		    "/var/qscheduler/queue", 0 },
		{ "another place", STRICT OPEN, CONF_DEFAULT_FILE, "/srv/q",
		    -EROFS },
		{ "a name that begins alike", STRICT OPEN, CONF_DEFAULT_FILE,
		    "/var/qscheduler2", -EROFS },
		{ "opened by a drop-in",
		    STRICT "ReadWritePaths=/var/qscheduler /srv/\n",
		    CONF_DEFAULT_FILE, "/srv/q", 0 },
		{ "closed below",
		    STRICT OPEN "ReadOnlyPaths=/var/qscheduler/queue\n",
		    CONF_DEFAULT_FILE, "/var/qscheduler/queue", -EROFS },
		{ "full: most is open", HEAD "ProtectSystem=full\n",
		    CONF_DEFAULT_FILE, "/srv/q", 0 },
		{ "full: /usr is not", HEAD "ProtectSystem=full\n",
		    CONF_DEFAULT_FILE, "/usr/q", -EROFS },
		{ "homes", HEAD "ProtectSystem=full\nProtectHome=read-only\n",
		    CONF_DEFAULT_FILE, "/home/q", -EROFS },
		{ "no protection", HEAD "ProtectSystem=no\n", CONF_DEFAULT_FILE,
		    "/srv/q", 0 },
		{ "another configuration", STRICT OPEN, "/tmp/conf", "/srv/q",
		    0 },
		{ "no unit", "LoadState=not-found\nProtectSystem=strict\n",
		    CONF_DEFAULT_FILE, "/srv/q", 0 },
		{ "not to be started",
		    "LoadState=loaded\nUnitFileState=disabled\n"
		    "ActiveState=inactive\nProtectSystem=strict\n",
		    CONF_DEFAULT_FILE, "/srv/q", 0 },
		{ "nothing", "", CONF_DEFAULT_FILE, "/srv/q", 0 },
	};
	struct buf error = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_reset(&error);
		cr_expect_eq(unit_judge(rows[i].shown, rows[i].conf,
				 rows[i].base, &error),
		    rows[i].want, "%s", rows[i].name);
		cr_expect_eq(strstr(buf_str(&error), "ReadWritePaths=") != NULL,
		    rows[i].want < 0, "%s: %s", rows[i].name, buf_str(&error));
	}
	buf_done(&error);
}
