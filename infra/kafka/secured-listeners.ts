import { LOOPBACK } from '../servers/ports.js'

/*
 * Listeners with authentication in addition to the plain one: with a password without TLS, with a password over TLS, and
 * with a client certificate. Clients of the plain listener may do anything, all others what the ACLs allow.
 */

export interface SecuredListeners {
  ports: { sasl: number; saslTls: number; mutualTls: number }
  /** Passwords by user name, for PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. */
  users: Readonly<Record<string, string>>
  tls: {
    /** PEM file of the brokers' key, certificate and authorities. */
    keyStore: string
    /** PEM file of the authorities of client certificates, whose common name is the user. */
    trustStore: string
  }
  /** Lifetime of a session with a password, before which the client must reauthenticate. Unlimited by default. */
  sessionMs?: number
}

const SECURITY = { SASL: 'SASL_PLAINTEXT', SASLTLS: 'SASL_SSL', MUTUALTLS: 'SSL' } as const
const WITH_PASSWORD = ['sasl', 'sasltls'] as const
const MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const

/** The settings of these listeners in server.properties. */
export function securedProperties(
  { ports, users, tls, sessionMs = 0 }: SecuredListeners,
  plain: Readonly<Record<string, string | number | boolean>>,
): Record<string, string | number> {
  const places = [
    `SASL://${LOOPBACK}:${ports.sasl}`,
    `SASLTLS://${LOOPBACK}:${ports.saslTls}`,
    `MUTUALTLS://${LOOPBACK}:${ports.mutualTls}`,
  ]
  const added = (name: string, more: readonly string[]) => [String(plain[name]), ...more].join(',')
  const known = Object.entries(users).map(([user, password]) => `user_${user}="${password}"`)
  const logins = WITH_PASSWORD.flatMap((listener) => [
    [`listener.name.${listener}.sasl.enabled.mechanisms`, MECHANISMS.join(',')],
    [`listener.name.${listener}.connections.max.reauth.ms`, sessionMs],
    [`listener.name.${listener}.plain.sasl.jaas.config`, jaas('plain.PlainLoginModule', known)],
    [`listener.name.${listener}.scram-sha-256.sasl.jaas.config`, jaas('scram.ScramLoginModule', [])],
    [`listener.name.${listener}.scram-sha-512.sasl.jaas.config`, jaas('scram.ScramLoginModule', [])],
  ])
  return {
    listeners: added('listeners', places),
    'advertised.listeners': added('advertised.listeners', places),
    'listener.security.protocol.map': added(
      'listener.security.protocol.map',
      Object.entries(SECURITY).map((pair) => pair.join(':')),
    ),
    'ssl.keystore.type': 'PEM',
    'ssl.keystore.location': tls.keyStore,
    'ssl.truststore.type': 'PEM',
    'ssl.truststore.location': tls.trustStore,
    'listener.name.mutualtls.ssl.client.auth': 'required',
    'ssl.principal.mapping.rules': 'RULE:^CN=([^,]+).*$/$1/,DEFAULT',
    ...(Object.fromEntries(logins) as Record<string, string | number>),
    'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
    'super.users': 'User:ANONYMOUS',
  }
}

/** Arguments for formatting the storage, so that the SCRAM users exist at the first start. */
export function scramArguments({ users }: SecuredListeners): string[] {
  return Object.entries(users).flatMap(([name, password]) =>
    ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((mechanism) => [
      '--add-scram',
      `${mechanism}=[name=${name},password=${password}]`,
    ]),
  )
}

function jaas(module: string, options: readonly string[]): string {
  return `org.apache.kafka.common.security.${[module, 'required', ...options].join(' ')};`
}
