#include "log/parts.h"

#include <string.h>

/* The event of the lines of text of each source (qscheduler-log(5)). Lint
 * compares this table with the sources and with the manual page. */
static const struct {
	const char *file, *event;
} topics[] = {
	{ "common/daemon/agent.c", "link" },
	{ "common/daemon/daemon.c", "process" },
	{ "common/daemon/queue.c", "process" },
	{ "common/daemon/reload.c", "reload" },
	{ "common/daemon/routes.c", "routing" },
	{ "deliver-local/local.c", "agent" },
	{ "deliver-local/stray.c", "stray-delivery" },
	{ "deliver-smtp/smtp.c", "agent" },
	{ "qctl/act/act.c", "operator" },
	{ "qctl/routing/rules.c", "operator" },
	{ "qscheduler/children/channel.c", "child" },
	{ "qscheduler/children/child.c", "child" },
	{ "qscheduler/children/group.c", "child" },
	{ "qscheduler/children/heartbeat.c", "heartbeat" },
	{ "qscheduler/children/orphan.c", "orphan" },
	{ "qscheduler/ground/worker.c", "disk" },
	{ "qscheduler/queues/days.c", "walk" },
	{ "qscheduler/queues/health.c", "queue" },
	{ "qscheduler/queues/late.c", "disk" },
	{ "qscheduler/queues/inventory.c", "queue" },
	{ "qscheduler/queues/objects.c", "shared-memory" },
	{ "qscheduler/queues/override.c", "override" },
	{ "qscheduler/queues/override_file.c", "override" },
	{ "qscheduler/queues/quarantine.c", "quarantine" },
	{ "qscheduler/queues/queue.c", "queue" },
	{ "qscheduler/queues/retirement.c", "retirement" },
	{ "qscheduler/queues/room.c", "disk" },
	{ "qscheduler/queues/sites.c", "site-table" },
	{ "qscheduler/supervisor/grow.c", "growth" },
	{ "qscheduler/supervisor/inbox.c", "request" },
	{ "qscheduler/supervisor/publish.c", "shared-memory" },
	{ "qscheduler/supervisor/reload.c", "reload" },
	{ "qscheduler/supervisor/requests.c", "request" },
	{ "qscheduler/supervisor/services.c", "quarantine" },
	{ "qscheduler/supervisor/signals.c", "signal" },
	{ "qscheduler/supervisor/start.c", "start" },
	{ "qscheduler/supervisor/store.c", "override" },
	{ "qscheduler/supervisor/super.c", "process" },
	{ "queue-send/clock_file.c", "clock" },
	{ "queue-send/control.c", "queue-send" },
	{ "queue-send/message/gone.c", "walk" },
	{ "queue-send/walks/walks.c", "walk" },
	{ "queue-send/disk/files.c", "disk" },
	{ "queue-send/evacuation/evacuate.c", "evacuation" },
	{ "queue-send/evacuation/targets.c", "evacuation" },
	{ "queue-send/agents/links.c", "link" },
	{ "queue-send/state/loop.c", "clock" },
	{ "queue-send/agents/offers.c", "link" },
	{ "queue-send/operators/operators.c", "operator" },
	{ "queue-send/operators/operators_acts.c", "operator" },
	{ "queue-send/operators/operators_door.c", "operator" },
	{ "queue-send/publish.c", "shared-memory" },
	{ "queue-send/message/recipients.c", "routing" },
	{ "queue-send/message/recover.c", "recovery" },
	{ "queue-send/message/probe.c", "disk" },
	{ "queue-send/message/results.c", "disk" },
	{ "queue-send/operators/operators_trace.c", "operator" },
	{ "queue-send/rules/rules.c", "operator" },
	{ "queue-send/backlog/share.c", "share" },
	{ "queue-send/schedule/schedule.c", "site-table" },
	{ "queue-send/message/sync.c", "disk" },
	{ "queue-send/turn.c", "process" },
	{ "todo-proc/bells.c", "doorbell" },
	{ "todo-proc/control.c", "process" },
	{ "todo-proc/examine.c", "damaged" },
	{ "todo-proc/offer.c", "link" },
	{ "todo-proc/pickup.c", "maildrop" },
	{ "todo-proc/prepared.c", "expansion" },
	{ "todo-proc/scan.c", "scan" },
	{ "todo-proc/waiting.c", "user-shares" },
	{ "todo-proc/watch.c", "maildrop" },
};

const char *
log_topic(const char *file)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(topics); i++)
		if (strcmp(topics[i].file, file) == 0)
			return topics[i].event;
	return "note";
}
