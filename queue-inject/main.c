#include "queue-inject/inject.h"

int
main(int argc, char **argv)
{
	return inject_main(argc, argv);
}
