// node --require loopback.cjs SERVER...: for servers that would listen on every address,
// on a port they cannot tell, and outlive whoever started them. Keeps them on 127.0.0.1,
// prints `listening on http://127.0.0.1:PORT`, and ends them when stdin closes.
'use strict';

const net = require('node:net');

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (port, ...rest) {
    const byPort = typeof port === 'number' || typeof port === 'string';
    if (!byPort) return listen.call(this, port, ...rest);
    if (typeof rest[0] === 'string') rest.shift();
    this.once('listening', () => {
        process.stdout.write(`listening on http://127.0.0.1:${this.address().port}\n`);
    });
    return listen.call(this, Number(port), '127.0.0.1', ...rest);
};

process.stdin.on('end', () => process.exit(0)).resume();
