import { Gauge, type Registry } from 'prom-client'
import type { Engine } from '#libs/engines/engine.js'

/** Tells of the room on the embedded engine's disk. */
export function measureRoom(room: NonNullable<Engine['room']>, registry: Registry): void {
  new Gauge({
    name: 'mayfly_disk_room_bytes',
    help: "Bytes that the data folder's disk may lose until nothing more is taken in.",
    registers: [registry],
    async collect() {
      this.set(await room.left().catch(() => Number.NaN))
    },
  })
}
