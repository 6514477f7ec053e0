import * as kind from './setting.js'

/** The views of the distributed engine. */
export const REDIS_SETTINGS = {
  redisUrls: kind.optionalList(
    'REDIS_URL',
    'Redis of the distributed engine: redis:// or rediss://; several, separated by commas, are nodes of one Cluster.',
    /^rediss?:\/\/[^\s,]+$/i,
    'must be a redis:// or rediss:// URL, or several with commas',
  ),
  redisTlsCa: kind.optionalText(
    'REDIS_TLS_CA',
    "PEM file of the authority that signed Redis's certificate; the system's authorities if unset. For rediss://.",
  ),
  redisTlsCert: kind.optionalText('REDIS_TLS_CERT', 'PEM file of the client certificate for Redis.'),
  redisTlsKey: kind.optionalText(
    'REDIS_TLS_KEY',
    'PEM file of the key that belongs to the client certificate for Redis.',
  ),
} as const
