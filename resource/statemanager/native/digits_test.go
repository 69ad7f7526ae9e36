package native_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const numbersText = `apiVersion: v1
kind: ConfigMap
metadata: {name: numbers}
data: {id: "id-${id}", whole: "${id:string}", unsigned: "${big:string}", default: "v${none:-1.10} ${none:-1234567890123456789}", small: "${small:string}"}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: numbers}
template:
  spec: {terminationGracePeriodSeconds: "${id}", containers: [{name: a, image: a}]}
`

func TestValuesKeepAllDigits(t *testing.T) {
	for name, kustomized := range map[string]bool{"manifests": false, "a kustomization": true} {
		t.Run(name, func(t *testing.T) {
			w := newPlatform(t)
			w.useEast()
			w.configMap("files", map[string]string{"all.yaml": numbersText, "kustomization.yaml": "resources: [all.yaml]"})
			source := &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: "files"}}
			spec := v1alpha1.ServiceTemplateSpec{Resources: source}
			if kustomized {
				spec = v1alpha1.ServiceTemplateSpec{Kustomize: source}
			} else {
				w.configMap("files", map[string]string{"all.yaml": numbersText})
			}
			w.template("numbers", spec)
			w.configMap("more", map[string]string{"values.yaml": "big: 18446744073709551615"})
			service := w.service("numbers", "numbers")
			service.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "more"}}
			service.Values = "small: 5\nid: 1234567890123456789"
			w.set("a", "east", service)
			for _, id := range []string{"1234567890123456789", "1234567890123456788"} {
				w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Values = "small: 5\nid: " + id })
				w.settle("a", "numbers Deployed")
				want := map[string]string{"id": "id-" + id, "whole": id, "unsigned": "18446744073709551615", "default": "v1.10 1234567890123456789", "small": "5"}
				for key, text := range want {
					if got := w.onEast("numbers").Data[key]; got != text {
						t.Errorf("%s is %q, want %q", key, got, text)
					}
				}
				pods := &corev1.PodTemplate{}
				if err := w.east.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "numbers"}, pods); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(*pods.Template.Spec.TerminationGracePeriodSeconds); got != id {
					t.Errorf("the number is %s, want %s", got, id)
				}
			}
			w.quiet("a")
		})
	}
}
