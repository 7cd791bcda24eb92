#include "deliver-smtp/smtp.h"

int
main(int argc, char **argv)
{
	static struct session_context context;

	return daemon_main(argc, argv, &smtp_ops, &context);
}
