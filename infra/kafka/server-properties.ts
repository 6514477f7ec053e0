import { LOOPBACK } from '../servers/ports.js'

/** Ports of a node. */
export interface NodePorts {
  clients: number
  controller: number
}

/** server.properties of the node with that id, starting at 1, in a quorum of all nodes. */
export function serverProperties(
  id: number,
  nodes: readonly NodePorts[],
  dataDir: string,
): Record<string, string | number | boolean> {
  const own = nodes[id - 1]
  if (own === undefined) throw new Error(`node ${id} has no ports`)
  const voters = nodes.map(({ controller }, voter) => `${voter + 1}@${LOOPBACK}:${controller}`)
  const copies = Math.min(nodes.length, 3)
  return {
    'process.roles': 'broker,controller',
    'node.id': id,
    'controller.quorum.voters': voters.join(','),
    'controller.listener.names': 'CONTROLLER',
    listeners: `CLIENTS://${LOOPBACK}:${own.clients},CONTROLLER://${LOOPBACK}:${own.controller}`,
    'advertised.listeners': `CLIENTS://${LOOPBACK}:${own.clients}`,
    'inter.broker.listener.name': 'CLIENTS',
    'listener.security.protocol.map': 'CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': dataDir,
    'auto.create.topics.enable': false,
    'group.initial.rebalance.delay.ms': 0,
    'offsets.topic.num.partitions': 4,
    'offsets.topic.replication.factor': copies,
    'transaction.state.log.num.partitions': 4,
    'transaction.state.log.replication.factor': copies,
    'transaction.state.log.min.isr': Math.min(copies, 2),
    // Enough for the largest mail. Each topic has its own, lower limit.
    'message.max.bytes': 300_000_000,
    'socket.request.max.bytes': 320_000_000,
    'num.network.threads': 2,
    'num.io.threads': 4,
    // The default would take half of a small heap.
    'log.cleaner.dedupe.buffer.size': 16 * 1024 * 1024,
  }
}
