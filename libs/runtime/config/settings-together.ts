import { KAFKA_SETTINGS, REDIS_SETTINGS, CLICKHOUSE_SETTINGS } from './distributed-settings.js'
import { INSTALLATION_SETTINGS } from './installation-settings.js'
import type { Environment } from './setting.js'
import { REACH_SETTINGS } from './reach-settings.js'
import { isLoopback, SMTP_SETTINGS } from './smtp-settings.js'

const SETTINGS = {
  ...INSTALLATION_SETTINGS,
  ...KAFKA_SETTINGS,
  ...REDIS_SETTINGS,
  ...CLICKHOUSE_SETTINGS,
  ...SMTP_SETTINGS,
}

type SettingName = keyof typeof SETTINGS

/** Settings that mean nothing one without the other. */
const PAIRS: readonly (readonly [SettingName, SettingName])[] = [
  ['smtpTlsCert', 'smtpTlsKey'],
  ['kafkaTlsCert', 'kafkaTlsKey'],
  ['redisTlsCert', 'redisTlsKey'],
  ['kafkaSaslMechanism', 'kafkaSaslUsername'],
  ['kafkaSaslUsername', 'kafkaSaslPassword'],
]
/** What the distributed engine, which KAFKA_BROKERS chooses, needs besides: many processes must agree on it. */
const NEEDED_WITH_KAFKA: readonly SettingName[] = ['redisUrls', 'masterKey', 'bootstrapApiKey']
/** What the embedded engine has no use for. */
const ONLY_WITH_KAFKA: readonly SettingName[] = ['redisUrls', 'clickhouseUrl']

/** What would be ignored where the connection is not over TLS: an operator who sets it thinks that it is. */
const KAFKA_TLS_FILES: readonly SettingName[] = ['kafkaTlsCa', 'kafkaTlsCert', 'kafkaTlsKey']
const REDIS_TLS_FILES: readonly SettingName[] = ['redisTlsCa', 'redisTlsCert', 'redisTlsKey']

/** A sentence for each fault of settings that are right by themselves and wrong together. */
export function faultsBetween(environment: Environment): string[] {
  return [...smtpFaults(environment), ...engineFaults(environment)]
}

function smtpFaults(environment: Environment): string[] {
  const faults: string[] = []
  const { MAYFLY_SMTP_TLS: tls = '', MAYFLY_SMTP_HOST: host = '' } = environment
  const { MAYFLY_SMTP_TLS_CERT: cert = '', MAYFLY_SMTP_TLS_KEY: key = '' } = environment
  // One without the other is a fault already.
  if (cert !== '' && key !== '' && tls !== 'files') {
    faults.push('MAYFLY_SMTP_TLS must be files if MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY are set')
  }
  if (tls === 'files' && cert === '' && key === '') {
    faults.push('MAYFLY_SMTP_TLS_CERT and MAYFLY_SMTP_TLS_KEY must be set if MAYFLY_SMTP_TLS is files')
  }
  if (tls === '' || tls === 'off') {
    const needTls = [
      ...(environment.MAYFLY_SMTP_REQUIRE_TLS === 'true' ? ['MAYFLY_SMTP_REQUIRE_TLS is true'] : []),
      ...(environment.MAYFLY_SMTPS_PORT ? ['MAYFLY_SMTPS_PORT is set'] : []),
    ]
    faults.push(...needTls.map((need) => `MAYFLY_SMTP_TLS must be self-signed or files if ${need}`))
  }
  const discards = environment.MAYFLY_UNKNOWN_RECIPIENTS === 'discard'
  if (environment.MAYFLY_DISCARD_FROM && !discards) {
    faults.push('MAYFLY_UNKNOWN_RECIPIENTS must be discard if MAYFLY_DISCARD_FROM is set')
  }
  const listensOn = host === '' ? REACH_SETTINGS.smtpHost.read(undefined) : host
  if (discards && !environment.MAYFLY_DISCARD_FROM && !isLoopback(listensOn)) {
    faults.push(
      'MAYFLY_DISCARD_FROM must be set if MAYFLY_UNKNOWN_RECIPIENTS is discard and MAYFLY_SMTP_HOST is not a loopback ' +
        'address',
    )
  }
  return faults
}

function engineFaults(environment: Environment): string[] {
  const variable = (name: SettingName) => SETTINGS[name].variable
  const isSet = (name: SettingName) => Boolean(environment[variable(name)])
  const faults = PAIRS.filter(([one, other]) => isSet(one) !== isSet(other)).map(
    ([one, other]) => `${variable(one)} and ${variable(other)} must be set together`,
  )
  if (isSet('kafkaBrokers')) {
    const missing = NEEDED_WITH_KAFKA.filter((name) => !isSet(name))
    faults.push(...missing.map((name) => `${variable(name)} must be set too where KAFKA_BROKERS is`))
    if (!isSet('clickhouseUrl') && environment.MAYFLY_COUNT_USAGE !== 'false') {
      faults.push('CLICKHOUSE_URL must be set too where KAFKA_BROKERS is, unless MAYFLY_COUNT_USAGE is false')
    }
  } else {
    const useless = ONLY_WITH_KAFKA.filter(isSet)
    faults.push(
      ...useless.map(
        (name) =>
          `KAFKA_BROKERS must be set too where ${variable(name)} is; the embedded engine uses neither`,
      ),
    )
  }
  const openKafkaFiles = environment.KAFKA_TLS === 'true' ? [] : KAFKA_TLS_FILES.filter(isSet)
  faults.push(...openKafkaFiles.map((name) => `KAFKA_TLS must be true where ${variable(name)} is set`))
  const redisUrls = (environment.REDIS_URL ?? '').split(',').map((url) => url.trim())
  const overTls = redisUrls.filter((url) => /^rediss:/i.test(url))
  if (overTls.length === 0) {
    const openRedisFiles = REDIS_TLS_FILES.filter(isSet)
    faults.push(
      ...openRedisFiles.map((name) => `REDIS_URL must begin with rediss:// where ${variable(name)} is set`),
    )
  } else if (overTls.length < redisUrls.length) {
    faults.push('REDIS_URL must have rediss:// for every node of the Cluster or for none')
  }
  if (isSet('clickhouseTlsCa') && !/^https:/i.test(environment.CLICKHOUSE_URL ?? '')) {
    faults.push('CLICKHOUSE_URL must begin with https:// where CLICKHOUSE_TLS_CA is set')
  }
  return faults
}
