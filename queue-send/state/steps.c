#include "queue-send/state/steps.h"

const char *const message_state_names[NSTATES] = {
	[STATE_OFFERED_INCOMING] = "offered-incoming",
	[STATE_OFFERED_DEFERRED] = "offered-deferred",
	[STATE_ENTERING_INCOMING] = "entering-incoming",
	[STATE_ENTERING_DEFERRED] = "entering-deferred",
	[STATE_ACTIVE] = "active",
	[STATE_READING] = "reading",
	[STATE_FETCHING] = "fetching",
	[STATE_FINISHED] = "finished",
	[STATE_STUCK] = "stuck",
	[STATE_UNSYNCED] = "unsynced",
	[STATE_SYNCING] = "syncing",
	[STATE_UNREPORTED] = "unreported",
	[STATE_REPORTING] = "reporting",
	[STATE_UNMOVED] = "unmoved",
	[STATE_LEAVING] = "leaving",
};

/* clang-format off */
const struct message_step message_steps[] = {
	{ STATE_OFFERED_INCOMING, STATE_ENTERING_INCOMING,
	    "its turn has come, and its move begins" },
	{ STATE_OFFERED_DEFERRED, STATE_ENTERING_DEFERRED,
	    "its turn has come, and its move begins" },
	{ STATE_ENTERING_INCOMING, STATE_OFFERED_INCOMING,
	    "no file can be moved now" },
	{ STATE_ENTERING_DEFERRED, STATE_OFFERED_DEFERRED,
	    "no file can be moved now" },
	{ STATE_ENTERING_INCOMING, STATE_ACTIVE, "its file is in active/" },
	{ STATE_ENTERING_DEFERRED, STATE_ACTIVE, "its file is in active/" },
	{ STATE_ACTIVE, STATE_READING, "a batch of recipients begins" },
	{ STATE_READING, STATE_FETCHING, "the batch is not in memory" },
	{ STATE_FETCHING, STATE_READING, "a thread has read the batch" },
	{ STATE_READING, STATE_ACTIVE, "the batch ends" },
	{ STATE_ACTIVE, STATE_FINISHED, "nothing waits, runs or is unread" },
	{ STATE_FINISHED, STATE_UNSYNCED, "it has marks that are not synced" },
	{ STATE_UNSYNCED, STATE_SYNCING, "a sync of its file begins" },
	{ STATE_UNSYNCED, STATE_FINISHED, "the file system is synced" },
	{ STATE_SYNCING, STATE_UNSYNCED, "no descriptor is free" },
	{ STATE_SYNCING, STATE_FINISHED, "the sync ends" },
	{ STATE_FINISHED, STATE_UNREPORTED, "its sender is to be told" },
	{ STATE_UNREPORTED, STATE_REPORTING, "a thread makes the report" },
	{ STATE_REPORTING, STATE_UNREPORTED, "the report is tried again" },
	{ STATE_REPORTING, STATE_FINISHED, "the report ends" },
	{ STATE_FINISHED, STATE_UNMOVED, "too many leave" },
	{ STATE_UNMOVED, STATE_FINISHED, "fewer leave" },
	{ STATE_FINISHED, STATE_LEAVING, "its move begins" },
	{ STATE_LEAVING, STATE_FINISHED, "it leaves in another way, or later" },
	{ STATE_LEAVING, STATE_STUCK, "its file cannot be moved" },
	{ STATE_FINISHED, STATE_STUCK, "its file cannot be removed" },
	{ STATE_STUCK, STATE_FINISHED, "it is tried again" },
};
/* clang-format on */

const size_t message_nsteps = ARRAY_LEN(message_steps);

bool
message_may_step(enum message_state from, enum message_state to)
{
	size_t i;

	for (i = 0; i < message_nsteps; i++)
		if (message_steps[i].from == from && message_steps[i].to == to)
			return true;
	return from == to;
}
