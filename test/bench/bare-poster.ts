import { Webhook } from 'standardwebhooks'
import { Pool } from 'undici'

export interface PostLoad {
  url: string
  secret: string
  body: string
  posts: number
  connections: number
}

/** The baseline of webhooks: signed POSTs per second of undici alone, all with the same body. */
export async function barePostRate({ url, secret, body, posts, connections }: PostLoad): Promise<number> {
  const { origin, pathname: path } = new URL(url)
  const pool = new Pool(origin, { connections })
  let next = 0
  const work = async () => {
    for (let number = next++; number < posts; number = next++) {
      const [id, at] = [`dlv_${number}`, new Date()]
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
        'webhook-signature': new Webhook(secret).sign(id, at, body),
      }
      const response = await pool.request({ method: 'POST', path, headers, body })
      await response.body.dump()
    }
  }
  const started = performance.now()
  await Promise.all(Array.from({ length: connections }, work))
  const seconds = (performance.now() - started) / 1_000
  await pool.close()
  return posts / seconds
}
