#include "deliver-local/local.h"

int
main(int argc, char **argv)
{
	return local_main(argc, argv);
}
