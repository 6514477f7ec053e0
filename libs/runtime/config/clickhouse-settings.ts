import * as kind from './setting.js'

/** Usage analytics of the distributed engine. */
export const CLICKHOUSE_SETTINGS = {
  clickhouseUrl: kind.optionalUrl(
    'CLICKHOUSE_URL',
    'ClickHouse of the distributed engine: http:// or https:// URL of its HTTP interface, without user and password.',
    (url) => url.username === '' && url.password === '' && url.search === '' && url.hash === '',
    'must be an http or https URL without user, password, query and fragment; CLICKHOUSE_USERNAME and ' +
      'CLICKHOUSE_PASSWORD are for the first two',
  ),
  clickhouseDatabase: kind.matching(
    'CLICKHOUSE_DATABASE',
    /^[a-z_][a-z0-9_]{0,62}$/,
    'must be 1 to 63 of lower-case letters, digits and underscore, no digit first',
    { default: 'mayfly', help: 'Database of ClickHouse.' },
  ),
  clickhouseUsername: kind.text('CLICKHOUSE_USERNAME', { default: 'default', help: 'User of ClickHouse.' }),
  clickhousePassword: kind.optionalText(
    'CLICKHOUSE_PASSWORD',
    "Password of ClickHouse's user; none if unset.",
  ),
  clickhouseTlsCa: kind.optionalText(
    'CLICKHOUSE_TLS_CA',
    "PEM file of the authority that signed ClickHouse's certificate; the system's authorities if unset. For https://.",
  ),
} as const
