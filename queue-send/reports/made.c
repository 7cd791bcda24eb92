/* Tasks that make reports, and the reports that a task has made. */
#include "queue-send/reports/reports.h"

#include <stdlib.h>

#include "log/log.h"
#include "queue-send/reports/report_task.h"
#include "submit/submit.h"

struct report_task *
report_task_new(struct send *s, const struct queue_id *id,
    void (*ended)(void *send, struct sync_task *task))
{
	struct report_task *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	sync_task_init(&t->task, report_task_work, NULL, ended);
	t->task.inode = id->inode;
	t->sp = &s->sp;
	t->id = *id;
	t->opt = submit_accept_options(s->conf, SPOOL_PREPARED, ROOM_SYSTEM);
	t->opt.max_content = 0;
	t->opt.flags = QUEUE_FILE_REPORT;
	t->size_limit = s->conf->bounce_size_limit;
	t->rcpts_limit = report_rcpts_limit(s->conf->bounce_size_limit);
	t->now_wall = s->now_wall;
	conf_host(s->conf, t->host);
	conf_domain(s->conf, t->domain);
	return t;
}

void
reports_say_waits(const struct queue_id *message, const struct told_to *to)
{
	char id[QUEUE_ID_SIZE];
	const struct log_field fields[] = {
		LOG_ADDR("report_to", to->address),
		LOG_INT("uid", to->uid),
	};
	const struct log_event event = {
		.level = LOG_INFO_L,
		.name = "report-waits",
		.id = id,
		.fields = fields,
		.nfields = ARRAY_LEN(fields),
		.text = "its report waits, since report_rate_limit is reached",
	};

	queue_id_format(message, id);
	log_write(&event);
}

/* One report was counted when the task began. Those of a VERP message count
 * for its stored sender, whatever the addresses that they go to. */
void
report_task_count(struct send *s, const struct report_task *t)
{
	const uint32_t limit = s->conf->report_rate_limit;
	const struct told_to to = { t->uid, t->to };
	struct told_rate *told = &s->reports.told;
	uint32_t i, n = t->nalone;

	s->reports.tasks--;
	if (t->look)
		return; /* none was counted */
	for (i = 0; i < REPORT_NKINDS; i++)
		n += t->made[i].count > 0;
	if (n == 0)
		told_take_back(told, &to, limit);
	for (i = 1; i < n; i++)
		told_count(told, &to, limit, s->now);
}

static void
say_one_made(struct send *s, const struct report_task *t, enum report_kind kind,
    const struct queue_id *made)
{
	static const char *const names[REPORT_NKINDS] = {
		[REPORT_FAILURE] = "sender non-delivery",
		[REPORT_DOUBLE] = "postmaster non-delivery",
		[REPORT_DELAY] = "sender delay",
		[REPORT_SUCCESS] = "sender delivery status",
	};
	char id[QUEUE_ID_SIZE], text[QUEUE_ID_SIZE];

	queue_id_format(&t->id, id);
	queue_id_format(made, text);
	log_message(LOG_INFO_L, "notification", id, "%s notification: %s",
	    names[kind], text);
	s->want_scan = true; /* only qmailq may ring the bell */
}

void
report_task_say_made(struct send *s, const struct report_task *t)
{
	uint32_t i;

	for (i = 0; i < REPORT_NKINDS; i++)
		if (t->made[i].count > 0)
			say_one_made(s, t, (enum report_kind)i, &t->made[i].id);
	for (i = 0; i < t->nalone; i++)
		say_one_made(s, t, t->made_alone[i].kind, &t->made_alone[i].id);
}
