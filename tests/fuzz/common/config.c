/* The configuration: what was loaded, written as --dump does and loaded again
 * is the same configuration (a restarted child reads just that). */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/conf.h"

/* The text of --dump without the remarks where a value came from. */
static void
dump(const struct conf *conf, struct buf *out)
{
	char *text = NULL, *line, *next;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	MUST(f != NULL && conf_dump(conf, f) == 0 && fclose(f) == 0);
	for (line = text; line != NULL && *line != '\0'; line = next) {
		char *remark;

		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		remark = strstr(line, " # ");
		MUST(buf_add(out, line,
			 remark == NULL ? strlen(line)
					: (size_t)(remark - line)) == 0);
		MUST(buf_add_char(out, '\n') == 0);
	}
	free(text);
}

/* What the scheduler gets is in its range whatever the file says. */
static void
check_limits(const struct conf *conf)
{
	struct site_params site;
	uint32_t i;

	for (i = 0; i < conf->ntransports; i++)
		conf_site_params(conf, i, &site);
	MUST(
	    conf->ntransports >= 1 && conf->ntransports <= CONF_TRANSPORTS_MAX);
	MUST(conf->queue_count >= 1 && conf->queue_count <= conf->queue_max);
	MUST(conf->queue_max <= CONF_QUEUES_MAX);
	MUST(conf->backoff.minimal_backoff_time <=
	    conf->backoff.maximal_backoff_time);
}

/* Was this text seen before? Then it reads back as it did then. */
static bool
is_known(const struct buf *text)
{
	static uint64_t seen[1 << 16];
	uint64_t hash = 0xcbf29ce484222325u, *place;
	size_t i;

	for (i = 0; i < text->len; i++)
		hash = (hash ^ (unsigned char)text->data[i]) * 0x100000001b3u;
	place = &seen[hash >> 48];
	if (*place == hash)
		return true;
	*place = hash;
	return false;
}

static void
check_again(const struct conf *conf)
{
	struct buf first = { 0 }, second = { 0 }, error = { 0 };
	struct conf again;

	dump(conf, &first);
	if (!is_known(&first)) {
		fuzz_file("again", first.data, first.len);
		MUST(conf_load(fuzz_path("again"), &again, &error) == 0);
		dump(&again, &second);
		MUST(strcmp(buf_str(&first), buf_str(&second)) == 0);
		MUST(conf_frozen_changes(conf, &again, &error) == 0);
		MUST(error.len == 0);
		conf_done(&again);
	}
	buf_done(&first);
	buf_done(&second);
	buf_done(&error);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf error = { 0 };
	struct conf conf;
	int r;

	fuzz_file("conf", data, size);
	FUZZ_FILL(conf);
	r = conf_load(fuzz_path("conf"), &conf, &error);
	if (r < 0) {
		MUST(r == -EINVAL && FUZZ_UNTOUCHED(conf));
		MUST(error.len > 0 && error.len < 9000);
		MUST(strchr(buf_str(&error), '\n') == NULL);
	} else {
		MUST(error.len == 0);
		check_limits(&conf);
		check_again(&conf);
		conf_done(&conf);
	}
	buf_done(&error);
	return 0;
}
