package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// stateOf summarizes the state of an object in a few words.
func stateOf(object map[string]any) string {
	if text(object, "metadata", "deletionTimestamp") != "" {
		return "being deleted"
	}
	switch text(object, "kind") {
	case "ConfigMap", "Secret":
		return count(len(fields(object, "data")), "key")
	case "CustomResourceDefinition":
		return definitionState(object)
	case "Deployment", "ReplicaSet", "StatefulSet":
		return fmt.Sprintf("%d/%d ready", number(object, "status", "readyReplicas"), number(object, "spec", "replicas"))
	case "EndpointSlice":
		endpoints, _, _ := unstructured.NestedSlice(object, "endpoints") // nil if it is not a list
		return count(len(endpoints), "endpoint")
	case "HorizontalPodAutoscaler":
		return fmt.Sprintf("wants %d (of %d to %d)", number(object, "status", "desiredReplicas"),
			number(object, "spec", "minReplicas"), number(object, "spec", "maxReplicas"))
	case "Namespace":
		return text(object, "status", "phase")
	case "Pod":
		return podState(object)
	case "Service":
		return text(object, "spec", "clusterIP")
	}
	return "present"
}

func definitionState(definition map[string]any) string {
	conditions, _, _ := unstructured.NestedSlice(definition, "status", "conditions") // nil if it is not a list
	for _, condition := range conditions {
		condition, _ := condition.(map[string]any)
		if text(condition, "type") == "Established" && text(condition, "status") == "True" {
			return "established"
		}
	}
	return "not established"
}

func podState(pod map[string]any) string {
	phase, host := text(pod, "status", "phase"), text(pod, "spec", "nodeName")
	if host == "" {
		return phase
	}
	return phase + " on " + host
}

func count(number int, thing string) string {
	if number == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", number, thing)
}

// text, number and fields read a field of an object. They return "", 0 and nil if the field is missing or has another
// type.

func text(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}

func number(object map[string]any, path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(object, path...)
	return value
}

func fields(object map[string]any, path ...string) map[string]any {
	value, _, _ := unstructured.NestedMap(object, path...)
	return value
}
