/* qtop - the queues of an instance, live (qtop(8)). */
#include "qtop/qtop.h"

int
main(int argc, char **argv)
{
	return qtop_main(argc, argv);
}
