package validation

// located is a spec with a type, a region and a Secret.
const located = `{type: a, region: b, secretRef: {name: c, namespace: d}, providerConfig: {anything: [1, 2.5, true, null]}, futureField: {a: b}}`

// validSpecs are valid specs, by kind.
var validSpecs = map[string]string{
	"BackupBucket":     located,
	"BackupEntry":      `{type: a, region: b, bucketName: c, secretRef: {name: d}}`,
	"Bastion":          `{type: a, userData: IyEvYmluL2Jhc2g=, ingress: [{ipBlock: {cidr: 0.0.0.0/0}}]}`,
	"ContainerRuntime": `{type: gvisor, binaryPath: /var/bin, workerPool: {name: a, selector: {matchLabels: {a: b}}}}`,
	"ControlPlane":     located,
	"DNSRecord":        `{type: a, secretRef: {name: b}, name: api.shoot.example.com, recordType: A, values: [1.2.3.4], ttl: 120}`,
	"Extension":        `{type: a, providerConfig: {apiVersion: v1}}`,
	"Infrastructure":   located,
	"Network":          `{type: calico, podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, ipFamilies: [IPv4]}`,
	"OperatingSystemConfig": `
type: gardenlinux
purpose: reconcile
units:
- {name: docker.service, command: restart, enable: true, filePaths: [/etc/a, /etc/b], dropIns: [{name: 10-a.conf, content: "[Service]"}]}
files:
- {path: /etc/a, permissions: 420, content: {inline: {encoding: b64, data: YQ==}}}
- {path: /etc/b, content: {secretRef: {name: a, dataKey: b}}}
- {path: /etc/c, content: {imageRef: {image: a, filePathInImage: /b}}}
- {path: /etc/d, hostName: one, content: {inline: {encoding: "", data: a}}}
- {path: /etc/d, hostName: two, content: {inline: {data: a}}}
criConfig:
  name: containerd
  cgroupDriver: systemd
  containerd:
    sandboxImage: pause
    registries:
    - {upstream: docker.io, server: "https://registry-1.docker.io", hosts: [{url: "http://10.0.0.1:5000", capabilities: [pull, resolve, push]}]}
    - {upstream: "registry.example.com:5000", hosts: [{url: "https://mirror.example.com/v2"}]}
    - {upstream: _default}
    plugins:
    - {path: [io.containerd.grpc.v1.cri, containerd], values: {default_runtime_name: runc}}
    - {op: add, path: [a], values: {}}
    - {op: remove, path: [a, b]}
`,
	"SelfHostedShootExposure": `
type: a
port: 443
endpoints:
- nodeName: node-1
  addresses:
  - {type: Hostname, address: node-1}
  - {type: InternalIP, address: 10.0.0.1}
  - {type: ExternalIP, address: "2001:db8::1"}
  - {type: InternalDNS, address: node-1.internal}
  - {type: ExternalDNS, address: node-1.example.com}
- {nodeName: node-2}
`,
	"Worker": `
type: a
region: b
secretRef: {name: c}
pools:
- name: one
  machineType: large
  machineImage: {name: gardenlinux, version: 1.2.3}
  architecture: arm64
  nodeTemplate: {capacity: {cpu: 2, memory: 8Gi, nvidia.com/gpu: "1"}}
- {name: two, machineType: small, machineImage: {name: a, version: b}, architecture: amd64}
- {name: three, machineType: small, machineImage: {name: a, version: b}}
`,
	"Etcd": `
replicas: 3
storageCapacity: 25Gi
etcd: {quota: 8Gi, defragmentationSchedule: "0 */24 * * *", heartbeatDuration: 10s}
backup:
  store: {prefix: shoot--a--b, container: c, provider: S3, secretRef: {name: d}}
  fullSnapshotSchedule: "42 3 * * MON-FRI"
  deltaSnapshotPeriod: 5m
  deltaSnapshotMemoryLimit: 100Mi
  garbageCollectionPeriod: 12h
`,
}

// specCase is a change of a valid spec and the expected causes: field, colon, and the beginning of the message.
type specCase struct {
	patch string
	want  []string
}

const (
	requiredText = ": Required value: field is required"

	wantType    = "spec.type" + requiredText
	wantRegion  = "spec.region" + requiredText
	wantSecret  = "spec.secretRef.name" + requiredText
	notQuantity = ": must be a quantity"
)

func ok(patch string) specCase { return specCase{patch: patch} }

func bad(patch string, want ...string) specCase { return specCase{patch, want} }

// locatedCases are the cases of all kinds with a type, a region and a Secret.
var locatedCases = []specCase{
	bad(`{type: null}`, wantType), bad(`{type: ""}`, wantType), bad(`{region: null}`, wantRegion), bad(`{region: ""}`, wantRegion),
	bad(`{secretRef: null}`, wantSecret), bad(`{secretRef: {name: ""}}`, wantSecret),
	bad(`{type: null, region: null, secretRef: {name: null}}`, wantType, wantRegion, wantSecret),
}

// specCases are the cases of all kinds.
var specCases = map[string][]specCase{
	"BackupBucket":   locatedCases,
	"ControlPlane":   locatedCases,
	"Infrastructure": locatedCases,
	"BackupEntry":    append(locatedCases[:len(locatedCases):len(locatedCases)], bad(`{bucketName: null}`, "spec.bucketName"+requiredText)),
	"Bastion": {
		bad(`{type: null}`, wantType), bad(`{userData: null}`, "spec.userData"+requiredText),
		bad(`{ingress: null}`, "spec.ingress"+requiredText), bad(`{ingress: []}`, "spec.ingress"+requiredText),
	},
	"ContainerRuntime": {
		bad(`{type: null}`, wantType), bad(`{binaryPath: null}`, "spec.binaryPath"+requiredText),
		bad(`{workerPool: null}`, "spec.workerPool.name"+requiredText), bad(`{workerPool: {name: ""}}`, "spec.workerPool.name"+requiredText),
	},
	"DNSRecord":               dnsRecordCases,
	"Extension":               {bad(`{type: null}`, wantType), bad(`{type: ""}`, wantType), ok(`{class: garden, providerConfig: null}`)},
	"Network":                 networkCases,
	"OperatingSystemConfig":   append(operatingSystemCases, containerdCases...),
	"SelfHostedShootExposure": exposureCases,
	"Worker":                  append(locatedCases[:len(locatedCases):len(locatedCases)], workerCases...),
	"Etcd":                    etcdCases,
}

var dnsRecordCases = []specCase{
	bad(`{type: null}`, wantType), bad(`{secretRef: null}`, wantSecret),
	bad(`{values: null}`, "spec.values"+requiredText), bad(`{values: []}`, "spec.values"+requiredText),
	ok(`{region: eu, zone: z1}`), bad(`{region: ""}`, `spec.region: Invalid value: "": must not be empty`),
	bad(`{zone: ""}`, `spec.zone: Invalid value: "": must not be empty`),
	ok(`{name: "*.ingress.example.com"}`), ok(`{name: example.com.}`),
	bad(`{name: null}`, "spec.name: Required value"), bad(`{name: com}`, "spec.name: Invalid value"),
	bad(`{name: a_b.example.com}`, "spec.name: Invalid value"), bad(`{name: _a.example.com}`, "spec.name: Invalid value"),
	bad(`{name: "a.*.example.com"}`, "spec.name: Invalid value"), bad(`{name: "*.*.example.com"}`, "spec.name: Invalid value"),
	ok(`{recordType: TXT, name: _acme-challenge.example.com, values: [anything at all, two]}`),
	ok(`{recordType: TXT, name: a.example.com}`),
	bad(`{recordType: TXT, name: a._b.example.com}`, "spec.name: Invalid value"),
	ok(`{recordType: AAAA, values: ["2001:db8::1", "2001:DB8:0::2"]}`), ok(`{recordType: AAAA}`), ok(`{values: ["2001:db8::1"]}`),
	bad(`{values: [1.2.3.4, 1.2.3, example.com, ""]}`, `spec.values[1]: Invalid value: "1.2.3"`,
		`spec.values[2]: Invalid value: "example.com"`, `spec.values[3]: Invalid value: ""`),
	ok(`{recordType: CNAME, values: [other.example.com]}`), bad(`{recordType: CNAME, values: [a_b]}`, "spec.values[0]: Invalid value"),
	bad(`{recordType: CNAME, values: [a.example.com, b.example.com]}`, "spec.values: Invalid value: 2: must be one value"),
	bad(`{recordType: CNAME, values: []}`, "spec.values"+requiredText),
	bad(`{recordType: MX}`, `spec.recordType: Unsupported value: "MX": supported values: "A", "AAAA", "CNAME", "TXT"`),
	bad(`{recordType: null}`, `spec.recordType: Unsupported value: ""`),
	ok(`{ttl: null}`), ok(`{ttl: 0}`), ok(`{ttl: 2147483647}`),
	bad(`{ttl: -1}`, "spec.ttl: Invalid value: -1: must be between 0 and 2147483647"), bad(`{ttl: 2147483648}`, "spec.ttl: Invalid value: 2147483648"),
}

var networkCases = []specCase{
	bad(`{type: null}`, wantType), bad(`{podCIDR: null}`, "spec.podCIDR"+requiredText), bad(`{serviceCIDR: ""}`, "spec.serviceCIDR"+requiredText),
	ok(`{ipFamilies: null}`), ok(`{ipFamilies: []}`), ok(`{ipFamilies: [IPv4, IPv6]}`), ok(`{ipFamilies: [IPv6, IPv4]}`),
	ok(`{ipFamilies: [IPv4, IPv6], podCIDR: "2001:db8:1::/48"}`),
	bad(`{ipFamilies: [IPv4, IPv5]}`, `spec.ipFamilies[1]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"`),
	bad(`{ipFamilies: [IPv4, IPv4]}`, `spec.ipFamilies[1]: Duplicate value: "IPv4"`),
	ok(`{ipFamilies: [IPv6], podCIDR: "2001:db8:1::/48", serviceCIDR: "2001:db8:2::/112"}`),
	ok(`{ipFamilies: [IPv6], podCIDR: "2001:db8:1::/48", serviceCIDR: "2001:db8:1::/112"}`),
	bad(`{ipFamilies: [IPv6]}`, `spec.podCIDR: Invalid value: "100.96.0.0/11": must be of the family IPv6`, "spec.serviceCIDR: Invalid value"),
	bad(`{podCIDR: "2001:db8:1::/48"}`, `spec.podCIDR: Invalid value: "2001:db8:1::/48": must be of the family IPv4`),
	bad(`{ipFamilies: null, serviceCIDR: "2001:db8:1::/48"}`, `spec.serviceCIDR: Invalid value: "2001:db8:1::/48": must be of the family IPv4`),
	bad(`{podCIDR: 100.96.0.0}`, `spec.podCIDR: Invalid value: "100.96.0.0": must be a CIDR`),
	bad(`{serviceCIDR: 100.64.0.0/33}`, `spec.serviceCIDR: Invalid value: "100.64.0.0/33": must be a CIDR`),
	bad(`{serviceCIDR: 100.96.0.0/24}`, `spec.serviceCIDR: Invalid value: "100.96.0.0/24": must not overlap with podCIDR 100.96.0.0/11`),
	bad(`{serviceCIDR: 100.0.0.0/8}`, `spec.serviceCIDR: Invalid value: "100.0.0.0/8": must not overlap`),
	bad(`{ipFamilies: [IPv4, IPv6], serviceCIDR: 100.96.0.0/24}`, "spec.serviceCIDR: Invalid value"),
}

func file(content string) string { return `{units: [], files: [{path: /a, content: ` + content + `}]}` }

var operatingSystemCases = []specCase{
	ok(`{type: null}`), ok(`{units: null, files: null, criConfig: null}`), ok(`{criConfig: {cgroupDriver: cgroupfs}}`),
	ok(`{purpose: provision, criConfig: {containerd: null}}`),
	bad(`{purpose: null}`, "spec.purpose"+requiredText),
	bad(`{purpose: other}`, `spec.purpose: Unsupported value: "other": supported values: "provision", "reconcile"`),
	bad(`{purpose: provision}`, "spec.criConfig.containerd: Forbidden"),
	bad(`{criConfig: {cgroupDriver: other}}`, `spec.criConfig.cgroupDriver: Unsupported value: "other": supported values: "cgroupfs", "systemd"`),
	bad(`{units: [{}]}`, "spec.units[0].name"+requiredText),
	bad(`{units: [{name: a, dropIns: [{}]}]}`, "spec.units[0].dropIns[0].name"+requiredText, "spec.units[0].dropIns[0].content"+requiredText),
	bad(`{units: [{name: a, filePaths: [/etc/a, /other]}]}`, `spec.units[0].filePaths[1]: Invalid value: "/other": must be the path of a file`),
	bad(`{units: [], files: [{content: {inline: {data: a}}}]}`, "spec.files[0].path"+requiredText),
	bad(`{units: [], files: [{path: /a}]}`, "spec.files[0].content: Required value: must have exactly one of"),
	bad(file(`{inline: {data: hidden}, secretRef: {name: a, dataKey: b}}`), "spec.files[0].content: Invalid value: must have exactly one of"),
	bad(file(`{inline: {data: hidden}, imageRef: {image: a, filePathInImage: b}}`), "spec.files[0].content: Invalid value: must have exactly one of"),
	bad(file(`{secretRef: {}}`), "spec.files[0].content.secretRef.name"+requiredText, "spec.files[0].content.secretRef.dataKey"+requiredText),
	bad(file(`{imageRef: {}}`), "spec.files[0].content.imageRef.image"+requiredText, "spec.files[0].content.imageRef.filePathInImage"+requiredText),
	bad(file(`{inline: {}}`), "spec.files[0].content.inline.data"+requiredText),
	bad(file(`{inline: {data: a, encoding: gzip}}`), `spec.files[0].content.inline.encoding: Unsupported value: "gzip"`),
	bad(`{units: [], files: [{path: /a, content: {inline: {data: a}}}, {path: /a, content: {inline: {data: a}}}]}`,
		`spec.files[1].path: Duplicate value: "/a"`),
	bad(`{units: [], files: [{path: /a, content: {inline: {data: a}}}, {path: /a, hostName: one, content: {inline: {data: a}}}]}`,
		`spec.files[1].path: Duplicate value: "/a"`),
	bad(`{units: [], files: [{path: /a, hostName: one, content: {inline: {data: a}}}, {path: /a, content: {inline: {data: a}}}]}`,
		`spec.files[1].path: Duplicate value: "/a"`),
	bad(`{units: [], files: [{path: /a, hostName: one, content: {inline: {data: a}}}, {path: /a, hostName: one, content: {inline: {data: a}}}]}`,
		`spec.files[1].path: Duplicate value: "/a"`),
}

func registry(fields string) string {
	return `{criConfig: {containerd: {registries: [{` + fields + `}]}}}`
}

func plugin(fields string) string { return `{criConfig: {containerd: {plugins: [{` + fields + `}]}}}` }

const (
	registryPath = "spec.criConfig.containerd.registries[0]"
	pluginPath   = "spec.criConfig.containerd.plugins[0]"
)

var containerdCases = []specCase{
	ok(`{criConfig: {containerd: {registries: null, plugins: null}}}`), ok(registry(`upstream: localhost`)), ok(registry(`upstream: "[::1]:5000"`)),
	ok(registry(`upstream: 10.0.0.1`)), ok(registry(`upstream: docker.io, server: "http://10.0.0.1:5000/v2"`)),
	bad(`{criConfig: {containerd: {sandboxImage: null}}}`, "spec.criConfig.containerd.sandboxImage"+requiredText),
	bad(registry(``), registryPath+".upstream"+requiredText),
	bad(registry(`upstream: "https://docker.io"`), registryPath+".upstream: Invalid value"), bad(registry(`upstream: docker.io/library`), registryPath+".upstream: Invalid value"),
	bad(registry(`upstream: "docker.io:70000"`), registryPath+".upstream: Invalid value"), bad(registry(`upstream: "docker.io:"`), registryPath+".upstream: Invalid value"),
	bad(registry(`upstream: a_b`), registryPath+".upstream: Invalid value"), bad(registry(`upstream: "docker.io:0"`), registryPath+".upstream: Invalid value"),
	bad(`{criConfig: {containerd: {registries: [{upstream: docker.io}, {upstream: _default}, {upstream: docker.io}, {upstream: _default}]}}}`,
		`spec.criConfig.containerd.registries[2].upstream: Duplicate value: "docker.io"`,
		`spec.criConfig.containerd.registries[3].upstream: Duplicate value: "_default"`),
	bad(registry(`upstream: docker.io, server: "ftp://docker.io"`), registryPath+".server: Invalid value: must be a URL"),
	bad(registry(`upstream: docker.io, server: "https://"`), registryPath+".server: Invalid value: must be a URL"),
	bad(registry(`upstream: docker.io, server: ""`), registryPath+".server"+requiredText),
	bad(registry(`upstream: docker.io, hosts: [{}, {url: docker.io}, {url: "https://hidden@x y"}]`), registryPath+".hosts[0].url"+requiredText,
		registryPath+".hosts[1].url: Invalid value: must be a URL", registryPath+".hosts[2].url: Invalid value: must be a URL"),
	bad(registry(`upstream: docker.io, hosts: [{url: "https://docker.io", capabilities: [pull, fly]}]`),
		registryPath+`.hosts[0].capabilities[1]: Unsupported value: "fly": supported values: "pull", "resolve", "push"`),
	ok(plugin(`path: [a]`)),
	bad(plugin(``), pluginPath+".path"+requiredText), bad(plugin(`path: []`), pluginPath+".path"+requiredText),
	bad(plugin(`path: [a], op: change`), pluginPath+`.op: Unsupported value: "change": supported values: "add", "remove"`),
	bad(plugin(`path: [a], op: remove, values: {a: b}`), pluginPath+".values: Forbidden"),
	bad(plugin(`path: [a], values: [hidden]`), pluginPath+".values: Invalid value: must be a mapping"),
	bad(plugin(`path: [a], values: '{"hidden": "b"}'`), pluginPath+".values: Invalid value: must be a mapping"),
}

var exposureCases = []specCase{
	bad(`{type: null}`, wantType), bad(`{endpoints: null}`, "spec.endpoints"+requiredText), bad(`{endpoints: []}`, "spec.endpoints"+requiredText),
	bad(`{endpoints: [{}]}`, "spec.endpoints[0].nodeName"+requiredText),
	ok(`{port: 1}`), ok(`{port: 65535}`), bad(`{port: null}`, "spec.port: Invalid value: 0"), bad(`{port: 65536}`, "spec.port: Invalid value: 65536"),
	bad(`{port: -1}`, "spec.port: Invalid value: -1"),
	bad(`{endpoints: [{nodeName: a, addresses: [{type: Other, address: a}, {address: a}]}]}`,
		`spec.endpoints[0].addresses[0].type: Unsupported value: "Other"`, `spec.endpoints[0].addresses[1].type: Unsupported value: ""`),
	bad(`{endpoints: [{nodeName: a, addresses: [{type: InternalIP, address: a}, {type: ExternalIP, address: ""}]}]}`,
		"spec.endpoints[0].addresses[0].address: Invalid value", "spec.endpoints[0].addresses[1].address: Invalid value"),
	bad(`{endpoints: [{nodeName: a, addresses: [{type: Hostname, address: a_b}, {type: InternalDNS, address: -a}, {type: ExternalDNS}]}]}`,
		"spec.endpoints[0].addresses[0].address: Invalid value", "spec.endpoints[0].addresses[1].address: Invalid value",
		"spec.endpoints[0].addresses[2].address: Invalid value"),
	ok(`{credentialsRef: {apiVersion: v1, kind: Secret, name: a, namespace: $NAMESPACE}}`),
	bad(`{credentialsRef: {apiVersion: v1, kind: Secret, name: a, namespace: other}}`, `spec.credentialsRef.namespace: Invalid value: "other"`),
	bad(`{credentialsRef: {apiVersion: v1, kind: Secret, namespace: $NAMESPACE}}`, "spec.credentialsRef.name"+requiredText),
	bad(`{credentialsRef: {apiVersion: v1, kind: ConfigMap, name: a, namespace: $NAMESPACE}}`, `spec.credentialsRef.kind: Unsupported value: "ConfigMap"`),
	bad(`{credentialsRef: {apiVersion: security.gardener.cloud/v1alpha1, kind: Secret, name: a, namespace: $NAMESPACE}}`,
		`spec.credentialsRef.apiVersion: Unsupported value: "security.gardener.cloud/v1alpha1"`),
}

func pool(fields string) string {
	return `{pools: [{name: a, machineType: b, machineImage: {name: c, version: d}, ` + fields + `}]}`
}

var workerCases = []specCase{
	ok(`{pools: null}`),
	bad(`{pools: [{}]}`, "spec.pools[0].name"+requiredText, "spec.pools[0].machineType"+requiredText,
		"spec.pools[0].machineImage.name"+requiredText, "spec.pools[0].machineImage.version"+requiredText),
	ok(pool(`architecture: amd64`)), bad(pool(`architecture: mips`), `spec.pools[0].architecture: Unsupported value: "mips": supported values: "amd64", "arm64"`),
	bad(pool(`architecture: ""`), `spec.pools[0].architecture: Unsupported value: ""`),
	ok(pool(`nodeTemplate: {}`)), ok(pool(`nodeTemplate: {capacity: {cpu: 1.5, memory: 0}}`)),
	bad(pool(`nodeTemplate: {capacity: {memory: -1, cpu: many}}`),
		`spec.pools[0].nodeTemplate.capacity.cpu: Invalid value: "many"`+notQuantity, "spec.pools[0].nodeTemplate.capacity.memory: Invalid value: -1: must not be negative"),
	bad(pool(`nodeTemplate: {capacity: {cpu: "1e-2147483648", memory: "1E+99999999"}}`),
		"spec.pools[0].nodeTemplate.capacity.cpu: Invalid value"+`: "1e-2147483648"`+notQuantity, "spec.pools[0].nodeTemplate.capacity.memory: Invalid value"),
	bad(pool(`nodeTemplate: {capacity: {cpu: true}}`), "spec.pools[0].nodeTemplate.capacity.cpu: Invalid value: true"+notQuantity),
}

var etcdCases = []specCase{
	ok(`{replicas: 0}`), ok(`{replicas: 2}`), ok(`{storageCapacity: 1073741824}`), ok(`{backup: {fullSnapshotSchedule: "", deltaSnapshotPeriod: 0s}}`),
	ok(`{backup: null, etcd: null, storageCapacity: null, replicas: null}`), ok(`{backup: {fullSnapshotSchedule: "@daily"}}`),
	ok(`{backup: {fullSnapshotSchedule: "TZ=Europe/Berlin 0 0 1,15 */2 1#1"}}`), ok(`{backup: {store: {prefix: ""}}}`),
	bad(`{replicas: -1}`, "spec.replicas: Invalid value: -1: must not be negative"),
	bad(`{storageCapacity: much}`, `spec.storageCapacity: Invalid value: "much"`+notQuantity),
	bad(`{etcd: {quota: ""}}`, `spec.etcd.quota: Invalid value: ""`+notQuantity),
	bad(`{backup: {deltaSnapshotMemoryLimit: [1]}}`, `spec.backup.deltaSnapshotMemoryLimit: Invalid value: [1]`+notQuantity),
	bad(`{backup: {fullSnapshotSchedule: "* * * *"}}`, `spec.backup.fullSnapshotSchedule: Invalid value: "* * * *": must be a schedule`),
	bad(`{etcd: {defragmentationSchedule: daily}}`, `spec.etcd.defragmentationSchedule: Invalid value: "daily": must be a schedule`),
	bad(`{etcd: {defragmentationSchedule: "0 0 * * * ; *"}}`, `spec.etcd.defragmentationSchedule: Invalid value`),
	bad(`{backup: {deltaSnapshotPeriod: "5"}}`, `spec.backup.deltaSnapshotPeriod: Invalid value: "5": must be a duration`),
	bad(`{backup: {garbageCollectionPeriod: ""}}`, `spec.backup.garbageCollectionPeriod: Invalid value: "": must be a duration`),
	bad(`{etcd: {heartbeatDuration: daily}}`, `spec.etcd.heartbeatDuration: Invalid value: "daily": must be a duration`),
}
