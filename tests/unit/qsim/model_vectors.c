/* The model is right: it selects what the reference did. */
#include "model.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#define VECTORS "tests/vectors/*.scn"

static void
read_picks(const char *scenario, struct buf *ret_text)
{
	size_t len = strlen(scenario) - strlen("scn"), n;
	char path[256], part[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%.*spicks", (int)len, scenario);
	f = fopen(path, "re");
	cr_assert_not_null(f, "%s", path);
	while ((n = fread(part, 1, sizeof(part), f)) > 0)
		cr_assert_eq(buf_add(ret_text, part, n), 0);
	cr_assert_eq(fclose(f), 0);
}

static void
replay(const char *path)
{
	struct buf want = { 0 }, got = { 0 }, error = { 0 };
	struct model_output out;
	struct scenario sc;

	cr_assert_eq(
	    scenario_read(path, &sc, &error), 0, "%s", buf_str(&error));
	model_run(&sc, &out);
	model_print(&sc, &out, &got);
	read_picks(path, &want);
	cr_expect_str_eq(buf_str(&got), buf_str(&want), "%s", path);
	model_output_done(&out);
	scenario_done(&sc);
	buf_done(&want);
	buf_done(&got);
}

Test(model, agrees_with_the_vectors)
{
	glob_t found;
	size_t i;

	cr_assert_eq(glob(VECTORS, 0, NULL, &found), 0);
	cr_assert_geq(found.gl_pathc, 129);
	for (i = 0; i < found.gl_pathc; i++)
		replay(found.gl_pathv[i]);
	globfree(&found);
}
