#include "submit/submit.h"

#include <stdio.h>

#include "base/date.h"

struct accept_options
submit_accept_options(const struct conf *conf, enum spool_dir dir)
{
	const uint64_t limit = conf->message_size_limit;

	return (struct accept_options){
		.dir = dir,
		.max_content = limit == 0 ? 0 : limit + ACCEPT_ADDED_MAX,
		.reserve_bytes = conf->queue_minfree_bytes,
		.reserve_inodes = conf->queue_minfree_inodes,
		.strict = conf->strict_sync,
	};
}

int
submit_received(const struct accept *a, const char *host, const char *eol,
    char out[SUBMIT_RECEIVED_MAX])
{
	const struct queue_file *file = &a->writer.file;
	struct queue_id id = { .arrival_wall = file->arrival_wall,
		.nonce = file->nonce,
		.queue = file->queue,
		.inode = a->inode };
	char text[QUEUE_ID_SIZE], date[DATE_SIZE];

	queue_id_format(&id, text);
	date_format(file->arrival_wall, date);
	return snprintf(out, SUBMIT_RECEIVED_MAX,
	    "Received: by %.255s (qscheduler, from uid %u)%s"
	    "\tid %s; %s%s",
	    host, (unsigned)file->uid, eol, text, date, eol);
}
