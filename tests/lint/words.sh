#!/bin/sh
# Refuse calls that this house does not use, promises of later work, and names
# of modules that say nothing.
cd "$(dirname "$0")/../.." || exit 1
status=0

sources=$(find common qscheduler queue-send todo-proc queue-inject queue-drop \
    deliver-local deliver-smtp setqload qtop qctl qsim -name '*.[ch]')

refuse() { # REGEX, what is said
	# shellcheck disable=SC2086 # a list of names without blanks
	if grep -nE "$1" $sources; then
		echo "  ^ $2"
		status=1
	fi
}

refuse '\b(system|popen|strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|strtok|alloca|longjmp|setjmp|sleep|usleep)\(' \
	'calls that are not used here'
refuse '\b(TODO|FIXME|XXX|HACK)\b' 'do it, or leave it out'
refuse 'typedef (struct|union|enum)[^;]*\{' 'no typedef of a struct'

if find common -name '*util*' -o -name '*misc*' -o -name '*helper*' | grep .; then
	echo "  ^ a name that says what is in it"
	status=1
fi
exit $status
