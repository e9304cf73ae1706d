# shellcheck shell=sh
# The npm packages, from a registry on loopback.
prepare() {
    ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm
    ln -sf ../lib/node_modules/npm/bin/npx-cli.js /usr/bin/npx
    npm config set registry http://127.0.0.1:4873 --location=user
    npm config set update-notifier false --location=user
    npm config set prefix /usr/local --location=user
    mkdir -p /usr/local/lib/node_modules /root/.npm
    node /test/registry.mjs 4873 /previous /release &
    until npm view portway version >/dev/null 2>&1; do sleep 0.2; done
}

install_version() { npm install --loglevel=error --no-audit --no-fund --global "portway@$1"; }

installed_version() { npm list --global --parseable --long | sed -n 's/.*:portway@//p' | cut -d: -f1; }

uninstall() { npm uninstall --loglevel=error --no-audit --no-fund --global portway; }
