import { Counter, type CounterConfiguration, type Registry } from 'prom-client'

/** Returns the counter with this name, which all roles of a process share: the first caller registers it. */
export function sharedCounter<Label extends string = string>(
  registry: Registry,
  configuration: Omit<CounterConfiguration<Label>, 'registers'>,
): Counter<Label> {
  const existing = registry.getSingleMetric(configuration.name)
  return existing instanceof Counter ? existing : new Counter({ ...configuration, registers: [registry] })
}
