# fish completion for bundlefs

# One word per line: KIND|NAME|VALUES|MEANING.
set -g __bundlefs_words '@WORDS@'

# Prints the lines of a kind, without the kind.
function __bundlefs_lines -a kind
    string replace -f "$kind|" '' -- (string split \n -- $__bundlefs_words | string match -- "$kind|*")
end

# Prints the words before the cursor that are neither flags nor values of flags, without bundlefs itself.
function __bundlefs_operands
    set -l skip 1
    for word in (commandline -opc)
        if test $skip = 1
            set skip 0
        else if contains -- $word -o --at --since --timeout --port --exec --type --localization --above --below --before --to --html
            set skip 1
        else if test $word = --count; and contains -- listen (commandline -opc)[2]
            set skip 1
        else if not string match -q -- '-*' $word
            printf '%s\n' $word
        end
    end
end

# Whether the command line has at least COUNT operands, and the first is one of the further arguments, if any.
function __bundlefs_at -a count
    set -l operands (__bundlefs_operands)
    test (count $operands) -ge $count; or return 1
    test (count $argv) = 1; and return 0
    contains -- "$operands[1]" $argv[2..]
end

function __bundlefs_is_mount
    set -l operands (__bundlefs_operands)
    test (count $operands) = 0; and return 0
    not string match -q -- "$operands[1]|*" (__bundlefs_lines command)
end

# Prints the mount points of bundles; mountinfo escapes characters as \040.
function __bundlefs_mounts
    for line in (string match -- '* - fuse.bundlefs *' </proc/self/mountinfo)
        printf '%b\n' (string split ' ' -- $line)[5]
    end
end

# Prints the names of a mount's routes; times out on a mount that hangs.
function __bundlefs_names
    set -l mount (__bundlefs_operands)[2]
    set -l control (timeout 1 bundlefs status $mount --json 2>/dev/null |
        string match -r '"control":"([^"\\\\]*)"')[2]
    test -n "$control"; or return
    timeout 1 sed -n 's/^route \([^ ]*\) .*/\1/p' $mount/$control 2>/dev/null | sort -u
end

# Prints the last components of the paths of a mount's layers: of all, or of the substitutions.
function __bundlefs_layers -a which
    set -l mount (__bundlefs_operands)[2]
    for line in (timeout 1 bundlefs layers $mount --json 2>/dev/null)
        test "$which" = all; or not string match -q '*"role":"MAIN"*' -- $line; or continue
        string match -r '"path":"[^"\\\\]*/([^"\\\\/]*)"' -- $line | tail -n 1
    end
end

# Prints the names of the saved profiles.
function __bundlefs_profiles
    set -l folder $XDG_CONFIG_HOME
    test -n "$folder"; or set folder $HOME/.config
    command ls $folder/bundlefs/profiles 2>/dev/null
end

# Completes the options after -o, separated by commas, and their values.
function __bundlefs_options
    set -l before (string match -r '^.*,' -- (commandline -ct))
    set -l option (string replace -r '^.*,' '' -- (commandline -ct))
    set -l named (string match -r '^([^=]*=)(.*)$' -- $option)
    for line in (__bundlefs_lines option)
        set -l fields (string split '|' -- $line)
        if test (count $named) = 0
            printf '%s%s\t%s\n' "$before" $fields[1] $fields[3]
        else if test "$named[2]" = "$fields[1]"
            switch $fields[2]
                case layers file
                    set -l lead (string match -r '^.*:' -- $named[3])
                    string replace -r '^' -- "$before$named[2]$lead" \
                        (__fish_complete_path (string replace -r '^.*:' '' -- $named[3]))
                case profile
                    string replace -r '^' -- "$before$named[2]" (__bundlefs_profiles)
                case text ''
                case '*'
                    printf "$before$named[2]%s\n" (string split ' ' -- $fields[2])
            end
        end
    end
end

for line in (__bundlefs_lines command)
    set -l fields (string split '|' -- $line)
    complete -c bundlefs -n 'not __bundlefs_at 1' -a $fields[1] -d $fields[3]
    switch $fields[2]
        case 'mount*'
            complete -c bundlefs -n "__bundlefs_at 1 $fields[1]; and not __bundlefs_at 2" \
                -a '(__bundlefs_mounts)' -d 'mounted bundle'
    end
    switch $fields[2]
        case '*layers'
            complete -c bundlefs -f -n "__bundlefs_at 2 layers; and not __bundlefs_at 3" -a 'set add remove move save load profiles'
            complete -c bundlefs -n "__bundlefs_at 3 layers; and contains -- (__bundlefs_operands)[3] save load" \
                -f -a '(__bundlefs_profiles)' -d 'profile'
            complete -c bundlefs -n "__bundlefs_at 3 layers; and contains -- (__bundlefs_operands)[3] remove move" \
                -f -a '(__bundlefs_layers)' -d 'layer'
        case '*names'
            complete -c bundlefs -f -n "__bundlefs_at 2 $fields[1]" -a '(__bundlefs_names)' -d 'route'
    end
end
for line in (__bundlefs_lines flag)
    set -l fields (string split '|' -- $line)
    set -l words (string split ' ' -- $fields[1])
    set -l condition "__bundlefs_at 1 $words[1]"
    test $words[1] = mount; and set condition __bundlefs_is_mount
    set -l flag -l (string sub -s 3 -- $words[2])
    string match -qr -- '^-[^-]' $words[2]; and set flag -s (string sub -s 2 -- $words[2])
    switch $fields[2]
        case ''
            complete -c bundlefs -n $condition $flag -d $fields[3]
        case layer
            complete -c bundlefs -n $condition $flag -x -a '(__bundlefs_layers all)' -d $fields[3]
        case route
            complete -c bundlefs -n $condition $flag -x -a '(__bundlefs_names)' -d $fields[3]
        case file
            complete -c bundlefs -n $condition $flag -r -d $fields[3]
        case options
            complete -c bundlefs -n $condition $flag -x -a '(__bundlefs_options)' -d $fields[3]
        case '*'
            complete -c bundlefs -n $condition $flag -x -d $fields[3]
    end
end
