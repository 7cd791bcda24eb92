/* The selections of the reference, line for line. Run from the top of the
 * tree, as make does. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "qsim/qsim.h"

#define VECTORS "tests/vectors"

struct picks {
	const struct scenario *sc;
	struct buf text;
};

static int
add_pick(void *ctx, const struct simulate_selection *selection)
{
	struct picks *p = ctx;

	return replay_add_line(p->sc, selection, &p->text);
}

/* As `qsim replay` would print it, twice: nothing depends on the last run. */
static void
replay(const char *path, struct buf *ret_text)
{
	struct scenario sc;
	struct buf error = { 0 };
	struct simulate_sums sums;
	uint64_t all = 0;
	uint32_t i;

	cr_assert_eq(
	    scenario_read(path, &sc, &error), 0, "%s", buf_str(&error));
	for (i = 0; i < 2; i++) {
		struct picks p = { .sc = &sc };
		const struct simulate_watch watch = {
			.ctx = &p,
			.selected = add_pick,
		};

		cr_assert_eq(
		    simulate(&sc, &sc.conf, sc.seed, &watch, &sums), 0);
		if (i == 0) {
			*ret_text = p.text;
			continue;
		}
		cr_expect_str_eq(buf_str(ret_text), buf_str(&p.text),
		    "%s: the same again", path);
		buf_done(&p.text);
	}
	for (i = 0; i < sc.nmessages; i++)
		all += sc.messages[i].nrcpts;
	cr_expect_eq(sums.delivered + sums.failed + sums.untried, all,
	    "%s: each recipient once", path);
	scenario_done(&sc);
}

static void
read_picks(const char *path, struct buf *text)
{
	FILE *f = fopen(path, "re");
	char line[128];

	cr_assert_not_null(f, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f) != NULL)
		cr_assert_eq(buf_add_str(text, line), 0);
	fclose(f);
}

static void
check(const char *name)
{
	struct buf scn = { 0 }, picks = { 0 }, got = { 0 }, want = { 0 };

	cr_assert_eq(buf_printf(&scn, VECTORS "/%s.scn", name), 0);
	cr_assert_eq(buf_printf(&picks, VECTORS "/%s.picks", name), 0);
	read_picks(buf_str(&picks), &want);
	replay(buf_str(&scn), &got);
	cr_expect_str_eq(buf_str(&got), buf_str(&want), "%s differs", name);
	buf_done(&scn);
	buf_done(&picks);
	buf_done(&got);
	buf_done(&want);
}

Test(replay, all_vectors)
{
	DIR *dir = opendir(VECTORS);
	const struct dirent *e;
	int n = 0;

	cr_assert_not_null(dir, "%s: %s", VECTORS, strerror(errno));
	while ((e = readdir(dir)) != NULL) {
		char name[256];
		const char *dot = strrchr(e->d_name, '.');

		if (dot == NULL || strcmp(dot, ".scn") != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(dot - e->d_name),
		    e->d_name);
		check(name);
		n++;
	}
	closedir(dir);
	cr_expect_geq(n, 129);
}
