# Sourced by scripts that fetch from Debian.

# Debian's mirrors as apt on this machine knows them, then the official one.
mirrors() {
    {
        if command -v apt-get >/dev/null; then
            # shellcheck disable=SC2016 # $(…) is apt's own syntax
            apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
                sed -n 's/^Debian|Debian|\(http.*\)$/\1/p'
        fi
        echo http://deb.debian.org/debian
    } | sed 's,/*$,,' | awk '!seen[$0]++'
}
