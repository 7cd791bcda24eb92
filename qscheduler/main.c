/* qscheduler - the supervisor of numbered mail queues (qscheduler(8)). */
#include "daemon/daemon.h"
#include "qscheduler/supervisor/options.h"
#include "qscheduler/supervisor/supervisor.h"

int
main(int argc, char **argv)
{
	struct options options;
	struct buf error = { 0 };

	daemon_sane_process();
	if (options_parse(argc, argv, &options, &error) < 0) {
		fprintf(stderr, "qscheduler: %s\n", buf_str(&error));
		options_usage(stderr);
		buf_done(&error);
		return EXIT_PERMANENT;
	}
	return options.command == COMMAND_RUN ? super_run(&options)
					      : command_run(&options);
}
