/** An envelope of 32 by 32 pixels: a PNG in the container of Windows icons, which every browser reads. */
export const FAVICON = Buffer.from(
  'AAABAAEAICAAAAEAIADEAAAAFgAAAIlQTkcNChoKAAAADUlIRFIAAAAgAAAAIAIDAAAADhSSZwAAAAlQTFRFAAAAL2/e////qM5W' +
    'BwAAAAF0Uk5TAEDm2GYAAABpSURBVHjaldCxDYBACAVQLBzBfRzBwjOR3ub2kQ0o7k8pHHox0Zj4G15+BRB1yTISUaqhKLzqAxMN' +
    'gfkF6cwNCyy7Nxko3qwM6GZgAUQdmgtX2MgVEEFA+YTlNx77fCzfDmwntydcbzkAIkxisnA1SNYAAAAASUVORK5CYII=',
  'base64',
)
