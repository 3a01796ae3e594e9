package integration

// driftPod is the pod template of the workloads. No node matches it.
const driftPod = `{metadata: {labels: {app: x}, annotations: {a: a}}, spec: {nodeSelector: {no: such},
  volumes: [{name: claim, persistentVolumeClaim: {claimName: claim}}, {name: data, emptyDir: {}},
    {name: projected, projected: {sources: [{secret: {name: s}}]}}, {name: config, configMap: {name: c}},
    {name: disk, persistentVolumeClaim: {claimName: disk}}],
  resourceClaims: [{name: gpu, resourceClaimName: gpu}, {name: nic, resourceClaimName: nic}],
  containers: [{name: a, image: x, volumeMounts: [{name: data, mountPath: /data}]}, {name: b, image: x}]}}`

const driftApps = "apiVersion: apps/v1\nmetadata: {name: NAME, namespace: NS}\n"

// driftBases are the manifests into which the fields of the rows are set.
var driftBases = map[string]string{
	"Deployment":  driftApps + "kind: Deployment\nspec: {replicas: 0, selector: {matchLabels: {app: x}}, template: POD}\n",
	"StatefulSet": driftApps + "kind: StatefulSet\nspec: {replicas: 0, serviceName: x, selector: {matchLabels: {app: x}}, template: POD}\n",
	"DaemonSet":   driftApps + "kind: DaemonSet\nspec: {selector: {matchLabels: {app: x}}, template: POD}\n",
	"ReplicaSet":  driftApps + "kind: ReplicaSet\nspec: {replicas: 0, selector: {matchLabels: {app: x}}, template: POD}\n",
	"CronJob": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: NAME, namespace: NS}\n" +
		"spec: {schedule: 0 0 1 1 *, suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: x}]}}}}}\n",
	"Service": "apiVersion: v1\nkind: Service\nmetadata: {name: NAME, namespace: NS}\n" +
		"spec: {type: ClusterIP, selector: {app: x}, ports: [{name: http, port: 80, protocol: TCP}]}\n",
	"NetworkPolicy":                  "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: NAME, namespace: NS}\nspec: {podSelector: {matchLabels: {app: x}}}\n",
	"Ingress":                        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: NAME, namespace: NS}\nspec: {defaultBackend: {service: {name: x, port: {number: 80}}}}\n",
	"PodDisruptionBudget":            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: NAME, namespace: NS}\nspec: {selector: {matchLabels: {app: x}}}\n",
	"HorizontalPodAutoscaler":        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: NAME, namespace: NS}\nspec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}\n",
	"ResourceQuota":                  "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: NAME, namespace: NS}\n",
	"LimitRange":                     "apiVersion: v1\nkind: LimitRange\nmetadata: {name: NAME, namespace: NS}\n",
	"ConfigMap":                      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME, namespace: NS}\n",
	"Secret":                         "apiVersion: v1\nkind: Secret\nmetadata: {name: NAME, namespace: NS}\n",
	"ServiceAccount":                 "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME, namespace: NS}\n",
	"Role":                           "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: NAME, namespace: NS}\n",
	"ClusterRole":                    "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-NAME}\n",
	"RoleBinding":                    "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: NAME, namespace: NS}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}\n",
	"ClusterRoleBinding":             "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NS-NAME}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: x}\n",
	"ValidatingWebhookConfiguration": "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: NS-NAME}\n",
}

// listRow returns the row for a list of two items. The first item always stays. The changes replace the second item
// by other, and add more. Both may be empty.
func listRow(kind, path string, merge mergeKind, first, second, other, more string) driftRow {
	edits := map[string]string{removedItem: "[" + first + "]"}
	if other != "" {
		edits[changedKey] = "[" + first + ", " + other + "]"
	}
	if more != "" {
		edits[addedItem] = "[" + first + ", " + second + ", " + more + "]"
	}
	return driftRow{kind: kind, path: path, merge: merge, have: "[" + first + ", " + second + "]", edits: edits}
}

// mapRow returns the row for a map.
func mapRow(kind, path string, merge mergeKind, first, second, other string) driftRow {
	return driftRow{kind: kind, path: path, merge: merge, have: "{" + first + ", " + second + "}", edits: map[string]string{
		changedKey: "{" + first + ", " + other + "}", addedItem: "{" + first + ", " + second + ", " + other + "}", removedItem: "{" + first + "}",
	}}
}

// unionRow returns the row for a field that has one of several members set.
func unionRow(kind, path string, merge mergeKind, have, other string) driftRow {
	return driftRow{kind: kind, path: path, merge: merge, have: have, edits: map[string]string{switchedMember: other}}
}

// and adds a switched member.
func (r driftRow) and(other string) driftRow {
	r.edits[switchedMember] = other
	return r
}

func driftRows() []driftRow {
	rows := podRows("Deployment", "spec.template.spec")
	for _, kind := range []string{"StatefulSet", "DaemonSet", "ReplicaSet"} {
		rows = append(rows, containerRows(kind, "spec.template.spec")...)
	}
	rows = append(rows, containerRows("CronJob", "spec.jobTemplate.spec.template.spec")...)
	rows = append(rows, workloadRows()...)
	rows = append(rows, networkRows()...)
	rows = append(rows, rightsRows()...)
	return append(rows, otherRows()...)
}

// containerRows returns the rows that all workloads share.
func containerRows(kind, spec string) []driftRow {
	return []driftRow{
		listRow(kind, spec+".containers", ownedByKey, "{name: a, image: x}", "{name: b, image: x}", "{name: c, image: x}", "{name: c, image: x}"),
		listRow(kind, spec+".initContainers", ownedByKey, "{name: i, image: x}", "{name: j, image: x}", "{name: k, image: x}", "{name: k, image: x}"),
		listRow(kind, spec+".volumes", ownedByKey, "{name: data, emptyDir: {}}", "{name: v, emptyDir: {}}", "{name: w, emptyDir: {}}", "{name: w, emptyDir: {}}").
			and("[{name: data, emptyDir: {}}, {name: v, hostPath: {path: /x}}]"),
		listRow(kind, spec+".containers.0.env", ownedByKey, `{name: A, value: "1"}`, `{name: B, value: "1"}`, `{name: C, value: "1"}`, `{name: C, value: "1"}`).
			and(`[{name: A, value: "1"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`),
	}
}

func podRows(kind, spec string) []driftRow {
	container := spec + ".containers.0"
	rows := containerRows(kind, spec)
	named := listRow(kind, container+".ports", ownedByKey, "{name: http, containerPort: 80, protocol: TCP}", "{name: s, containerPort: 81, protocol: TCP}",
		"{name: s, containerPort: 8888, protocol: TCP}", "")
	named.alone = true
	devices := listRow(kind, container+".volumeDevices", ownedByKey, "{name: claim, devicePath: /dev/a}", "{name: disk, devicePath: /dev/b}",
		"{name: disk, devicePath: /dev/c}", "")
	devices.alone = true // a volume can be one device
	return append(rows,
		listRow(kind, container+".envFrom", ownedWhole, "{configMapRef: {name: a}}", "{configMapRef: {name: b}}", "{configMapRef: {name: c}}", "{configMapRef: {name: c}}").
			and("[{configMapRef: {name: a}}, {secretRef: {name: b}}]"),
		listRow(kind, container+".ports", ownedByKey, "{containerPort: 80, protocol: TCP}", "{containerPort: 81, protocol: TCP}",
			"{containerPort: 82, protocol: TCP}", "{containerPort: 81, protocol: UDP}"),
		named,
		listRow(kind, container+".volumeMounts", ownedByKey, "{name: data, mountPath: /a}", "{name: data, mountPath: /b}", "{name: data, mountPath: /c}", "{name: data, mountPath: /c}"),
		devices,
		listRow(kind, container+".args", ownedWhole, "a", "b", "c", "c"),
		mapRow(kind, container+".resources.limits", ownedByKey, `cpu: "1"`, "memory: 1Gi", "ephemeral-storage: 1Gi"),
		listRow(kind, container+".resources.claims", ownedByKey, "{name: gpu}", "{name: nic}", "", ""),
		listRow(kind, container+".resizePolicy", ownedWhole, "{resourceName: cpu, restartPolicy: NotRequired}", "{resourceName: memory, restartPolicy: NotRequired}", "", ""),
		listRow(kind, container+".securityContext.capabilities.add", ownedWhole, "NET_ADMIN", "CHOWN", "KILL", "KILL"),
		unionRow(kind, container+".livenessProbe", ownedByKey, "{httpGet: {path: /, port: 80}}", "{exec: {command: [x]}}"),
		unionRow(kind, container+".lifecycle.preStop", ownedByKey, "{httpGet: {path: /, port: 80}}", "{exec: {command: [x]}}"),
		listRow(kind, spec+".volumes.2.projected.sources", ownedWhole, "{secret: {name: a}}", "{secret: {name: b}}", "{secret: {name: c}}", "{secret: {name: c}}").
			and("[{secret: {name: a}}, {configMap: {name: b}}]"),
		listRow(kind, spec+".volumes.3.configMap.items", ownedWhole, "{key: a, path: a}", "{key: b, path: b}", "{key: c, path: c}", "{key: c, path: c}"),
		listRow(kind, spec+".tolerations", ownedWhole, "{key: a, operator: Exists}", "{key: b, operator: Exists}", "{key: c, operator: Exists}", "{key: c, operator: Exists}"),
		mapRow(kind, spec+".nodeSelector", ownedWhole, "no: such", "a: a", "b: b"),
		listRow(kind, spec+".imagePullSecrets", ownedByKey, "{name: a}", "{name: b}", "{name: c}", "{name: c}"),
		listRow(kind, spec+".hostAliases", ownedByKey, "{ip: 192.0.2.1, hostnames: [a]}", "{ip: 192.0.2.2, hostnames: [a]}", "{ip: 192.0.2.3, hostnames: [a]}", "{ip: 192.0.2.3, hostnames: [a]}"),
		listRow(kind, spec+".topologySpreadConstraints", ownedByKey, "{topologyKey: a, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}",
			"{topologyKey: b, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}", "{topologyKey: b, whenUnsatisfiable: ScheduleAnyway, maxSkew: 1}",
			"{topologyKey: c, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}"),
		listRow(kind, spec+".affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution", ownedWhole,
			"{topologyKey: a, labelSelector: {matchLabels: {app: x}}}", "{topologyKey: b, labelSelector: {matchLabels: {app: x}}}",
			"{topologyKey: c, labelSelector: {matchLabels: {app: x}}}", "{topologyKey: c, labelSelector: {matchLabels: {app: x}}}"),
		listRow(kind, spec+".resourceClaims", ownedByKey, "{name: gpu, resourceClaimName: a}", "{name: nic, resourceClaimName: a}", "{name: c, resourceClaimName: a}", "{name: c, resourceClaimName: a}").
			and("[{name: gpu, resourceClaimName: a}, {name: nic, resourceClaimTemplateName: a}]"),
		listRow(kind, spec+".readinessGates", ownedWhole, "{conditionType: a}", "{conditionType: b}", "{conditionType: c}", "{conditionType: c}"),
		listRow(kind, spec+".securityContext.sysctls", ownedWhole, `{name: kernel.shm_rmid_forced, value: "0"}`, `{name: net.ipv4.ip_local_port_range, value: 1 2}`,
			`{name: net.ipv4.tcp_syncookies, value: "0"}`, `{name: net.ipv4.tcp_syncookies, value: "0"}`),
		listRow(kind, spec+".securityContext.supplementalGroups", ownedWhole, "1", "2", "3", "3"),
		listRow(kind, spec+".dnsConfig.nameservers", ownedWhole, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.3"),
		listRow(kind, spec+".dnsConfig.options", ownedWhole, "{name: a}", "{name: b}", "{name: c}", "{name: c}"),
		mapRow(kind, "spec.template.metadata.labels", ownedByKey, "app: x", "b: b", "c: c"),
		mapRow(kind, "spec.template.metadata.annotations", ownedByKey, "a: a", "b: b", "c: c"),
	)
}

func workloadRows() []driftRow {
	return []driftRow{
		unionRow("Deployment", "spec.strategy", ownedByKey, "{type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", "{type: Recreate}"),
		unionRow("Deployment", "spec.strategy", ownedByKey, "{type: Recreate}", "{type: RollingUpdate, rollingUpdate: {maxSurge: 1}}"),
		unionRow("StatefulSet", "spec.updateStrategy", ownedByKey, "{type: RollingUpdate, rollingUpdate: {partition: 1}}", "{type: OnDelete}"),
		unionRow("DaemonSet", "spec.updateStrategy", ownedByKey, "{type: RollingUpdate, rollingUpdate: {maxUnavailable: 2}}", "{type: OnDelete}"),
	}
}

func networkRows() []driftRow {
	from := func(label string) string { return "{from: [{podSelector: {matchLabels: {app: " + label + "}}}]}" }
	to := func(label string) string { return "{to: [{podSelector: {matchLabels: {app: " + label + "}}}]}" }
	expression := func(key string) string { return "{key: " + key + ", operator: Exists}" }
	ports := listRow("Service", "spec.ports", ownedByKey, "{name: http, port: 80, protocol: TCP}", "{name: s, port: 81, protocol: TCP}", "{name: s, port: 8888, protocol: TCP}", "")
	ports.alone = true
	return []driftRow{
		ports,
		listRow("Service", "spec.ports", ownedByKey, "{name: http, port: 80, protocol: TCP}", "{name: s, port: 81, protocol: TCP}", "{name: t, port: 82, protocol: TCP}", "{name: t, port: 82, protocol: TCP}"),
		mapRow("Service", "spec.selector", ownedWhole, "app: x", "b: b", "c: c"),
		listRow("Service", "spec.externalIPs", ownedWhole, "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.3"),
		unionRow("Service", "spec.type", ownedByKey, "ClusterIP", "NodePort"),
		unionRow("Service", "spec.sessionAffinity", ownedByKey, "None", "ClientIP"),
		listRow("NetworkPolicy", "spec.ingress", ownedWhole, from("a"), from("b"), from("c"), from("c")).and("[" + from("a") + ", {from: [{ipBlock: {cidr: 192.0.2.0/24}}]}]"),
		listRow("NetworkPolicy", "spec.egress", ownedWhole, to("a"), to("b"), to("c"), to("c")),
		listRow("NetworkPolicy", "spec.policyTypes", ownedWhole, "Ingress", "Egress", "", ""),
		mapRow("NetworkPolicy", "spec.podSelector.matchLabels", ownedWhole, "a: a", "b: b", "c: c"),
		listRow("NetworkPolicy", "spec.podSelector.matchExpressions", ownedWhole, expression("a"), expression("b"), expression("c"), expression("c")),
		listRow("Ingress", "spec.tls", ownedWhole, "{hosts: [a.example.org]}", "{hosts: [b.example.org]}", "{hosts: [c.example.org]}", "{hosts: [c.example.org]}"),
		unionRow("PodDisruptionBudget", "spec", ownedByKey, "{maxUnavailable: 1, selector: {matchLabels: {app: x}}}", "{minAvailable: 1, selector: {matchLabels: {app: x}}}"),
		mapRow("PodDisruptionBudget", "spec.selector.matchLabels", ownedWhole, "a: a", "b: b", "c: c"),
	}
}

func rightsRows() []driftRow {
	rule := func(resource string) string { return `{apiGroups: [""], resources: [` + resource + "], verbs: [get]}" }
	subject := func(name string) string {
		return "{apiGroup: rbac.authorization.k8s.io, kind: User, name: " + name + "}"
	}
	selector := func(label string) string { return "{matchLabels: {aggregate: " + label + "}}" }
	var rows []driftRow
	for _, kind := range []string{"Role", "ClusterRole"} {
		rows = append(rows, listRow(kind, "rules", ownedWhole, rule("pods"), rule("services"), rule("secrets"), rule("secrets")))
	}
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		rows = append(rows, listRow(kind, "subjects", ownedWhole, subject("a"), subject("b"), subject("c"), subject("c")))
	}
	return append(rows, listRow("ClusterRole", "aggregationRule.clusterRoleSelectors", ownedWhole, selector("a"), selector("b"), selector("c"), selector("c")))
}

func otherRows() []driftRow {
	metric := func(resource string) string {
		return "{type: Resource, resource: {name: " + resource + ", target: {type: Utilization, averageUtilization: 50}}}"
	}
	limit := func(kind string) string { return "{type: " + kind + ", max: {cpu: 1}}" }
	webhook := func(name string) string {
		return "{name: " + name + ".example.org, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore, " +
			"clientConfig: {url: https://example.org}, namespaceSelector: {matchLabels: {no: such}}}"
	}
	return []driftRow{
		listRow("HorizontalPodAutoscaler", "spec.metrics", ownedWhole, metric("cpu"), metric("memory"), "", ""),
		mapRow("ResourceQuota", "spec.hard", ownedByKey, `pods: "100"`, `services: "500"`, `secrets: "500"`),
		listRow("LimitRange", "spec.limits", ownedWhole, limit("Container"), limit("Pod"), "", ""),
		mapRow("ConfigMap", "data", ownedByKey, "a: a", "b: b", "c: c"),
		mapRow("ConfigMap", "binaryData", ownedByKey, "a: YQ==", "b: YQ==", "c: YQ=="),
		mapRow("Secret", "data", ownedByKey, "a: YQ==", "b: YQ==", "c: YQ=="),
		listRow("ValidatingWebhookConfiguration", "webhooks", ownedByKey, webhook("a"), webhook("b"), webhook("c"), webhook("c")),
		mapRow("ConfigMap", "metadata.labels", openByKey, "a: a", "b: b", "c: c"),
		mapRow("ConfigMap", "metadata.annotations", openByKey, "a: a", "b: b", "c: c"),
	}
}
