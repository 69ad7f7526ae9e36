package machines_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// What the operator of machines declares is what it needs, and nothing else.
func TestMachinesHaveExactlyTheRightsThatTheyNeed(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the rights of quickstart are looked at")
	}
	dockertest.Require(t)
	life := lifeOfTheShop(t)
	life.Neighbour, life.NeighbourAfter = nil, nil
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, StringData: map[string]string{"KEY": "secret"}}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Data: map[string]string{"LANGUAGE": "en"}}
	first := &life.Phases[0]
	first.Do = operatortest.All(operatortest.Create(secret, configMap), first.Do, operatortest.Patch(example.NewService("", ""),
		`{"spec": {"envFrom": [{"secretRef": {"name": "shop"}}, {"configMapRef": {"name": "shop"}}]}}`))
	operatortest.Rights(t, life)
}
