# SPDX-License-Identifier: Apache-2.0
# For shells other than bash: complete.bash FILE WORD…, where FILE is bash's completion of the program that is the first WORD, and the
# last WORD is what is being typed. Prints what may stand there, one a line.
# shellcheck shell=bash source=/dev/null
source "$1"
shift
name=${1##*/}
COMP_WORDS=("$@")
export COMP_CWORD=$(($# - 1))
"_${name//-/_}"
((${#COMPREPLY[@]} == 0)) || printf '%s\n' "${COMPREPLY[@]}"
