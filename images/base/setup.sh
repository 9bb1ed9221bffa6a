#!/bin/bash
# What every workspace has beside packages: Coder's usual user with a home of its own, free to use sudo as in
# Coder's example images, and the locale that modules' scripts ask for.
set -euo pipefail
useradd --create-home --uid 1000 --shell /bin/bash coder
echo 'coder ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/coder
chmod 440 /etc/sudoers.d/coder
echo 'en_US.UTF-8 UTF-8' > /etc/locale.gen
locale-gen
mkdir -p /run/reprise
rm -rf /var/cache/apt/archives/*.deb
