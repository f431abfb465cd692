#!/usr/bin/env bash
# Tests the loader and the registry with NVIDIA's drivers 450 to 555 on a machine without a GPU. Debian's packages are
# unpacked into .cache/; nothing is installed. The tests load the drivers as an ordinary user, because as root cuInit
# creates a device node.
#
# Exit code 75: a download failed three times. Exit code 1 if Debian no longer has a driver.
set -euo pipefail
cd "$(dirname "$0")/.."

home=$PWD/.cache/drivers
apt=$home/apt
# Driver and Debian package. No build is named, because Debian replaces builds in security updates.
packages=(
    "450 libnvidia-tesla-450-cuda1"
    "470 libnvidia-tesla-470-cuda1"
    "525 libnvidia-tesla-cuda1"
    "535 libcuda1"
    "550 libcuda1"
    "555 libcuda1"
)
options=(
    -o "Dir::Etc=$apt/etc" -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache"
    -o Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d -o APT::Sandbox::User=root
)

# Fetches package lists for the suites that have drivers. The lists are kept apart: the system's apt configuration stays
# as it is.
lists() {
    mkdir -p "$apt"/etc/{sources.list.d,apt.conf.d,preferences.d} "$apt"/{lists,cache/archives}/partial
    sed -e 's/^Suites: bookworm bookworm-updates$/Suites: bullseye bookworm trixie experimental/' \
        -e 's/^Components:.*/Components: non-free/' \
        /etc/apt/sources.list.d/debian.sources >"$apt/etc/sources.list.d/drivers.sources"
    cp /etc/apt/apt.conf.d/99* "$apt/etc/apt.conf.d/" 2>/dev/null || true
    apt-get "${options[@]}" -qq -o APT::Update::Error-Mode=any update && is_updated=yes
}

# version_of DRIVER PACKAGE: prints the version of the package that has the driver; nothing if the lists have none.
version_of() {
    apt-cache "${options[@]}" madison "$2" | awk -v d="$1" '$3 ~ "^" d "[.]" { print $3; exit }'
}

fetch() {
    local driver=$1 package=$2 version
    version=$(version_of "$driver" "$package")
    [ -n "$version" ] || return
    rm -rf "$home/deb" && mkdir -p "$home/deb"
    (cd "$home/deb" && apt-get "${options[@]}" -qq download "$package=$version") || return
    dpkg -x "$home"/deb/*.deb "$home/$driver.new" && mv "$home/$driver.new" "$home/$driver"
}

is_updated=
for try in 1 2 3; do
    missing=()
    for line in "${packages[@]}"; do
        driver=${line% *}
        [ -d "$home/$driver" ] || missing+=("$line")
    done
    [ ${#missing[@]} = 0 ] && break
    sleep $(((try - 1) * 5))
    lists || true
    for line in "${missing[@]}"; do
        fetch "${line% *}" "${line#* }" || echo "driver ${line% *} was not fetched (try $try of 3)" >&2
    done
done
for line in "${packages[@]}"; do
    if [ ! -d "$home/${line% *}" ]; then
        if [ -n "$is_updated" ] && [ -z "$(version_of "${line% *}" "${line#* }")" ]; then
            echo "ci/drivers.sh: Debian has no ${line#* } with driver ${line% *} any more; name another package" >&2
            exit 1
        fi
        echo "ci/drivers.sh: no package with driver ${line% *} could be downloaded" >&2
        exit 75
    fi
done

export CUDA_ABI_DRIVERS=$home
cargo test --workspace --test abi_drivers -- --include-ignored --nocapture
