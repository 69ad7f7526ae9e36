package machines

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// Replicas is how many containers the service has.
const Replicas = 6

// Images are the versions of the service: shop:1, shop:2, and shop:bad, which starts and never works.
func Images() []dockertest.Image {
	return []dockertest.Image{
		dockertest.App("shop:1", map[string]string{"VERSION": "1"}),
		dockertest.App("shop:2", map[string]string{"VERSION": "2"}),
		dockertest.App("shop:bad", map[string]string{"MODE": "unhealthy"}),
	}
}

// ShopImages are those of compose.yaml: web and api in two versions, and postgres:debian, which is the PostgreSQL that is installed here.
func ShopImages() []dockertest.Image {
	images := []dockertest.Image{dockertest.PostgreSQL("postgres:debian")}
	for _, version := range []string{"1", "2"} {
		program := func(name string) dockertest.Image {
			return dockertest.Program(name+":"+version, "github.com/operatorkit/operatorkit/examples/machines/cmd/shop", "VERSION="+version)
		}
		images = append(images, program("web"), dockertest.WithPSQL(program("api")))
	}
	return images
}

// NewMachine is the Machine of an engine.
func NewMachine(namespace string, engine *dockertest.Engine) *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: engine.Name()},
		Spec:       v1alpha1.MachineSpec{Address: engine.Host()},
	}
}

// NewMigration is the job that migrates the database to a version, which is modelled: it says so, and ends.
func NewMigration(namespace, version string) *v1alpha1.MachineService {
	return &v1alpha1.MachineService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "migrate"},
		Spec: v1alpha1.MachineServiceSpec{ServiceSpec: api.ServiceSpec{
			Mode:      api.ServiceModeJob,
			Container: api.ContainerSpec{Image: "shop:" + version, PullPolicy: api.PullNever, Command: []string{"migrate"}},
		}},
	}
}

// NewService is the service in a version. Its port is one that the engine picks, so that two containers can be on one machine.
func NewService(namespace, version string) *v1alpha1.MachineService {
	replicas := int32(Replicas)
	return &v1alpha1.MachineService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: v1alpha1.MachineServiceSpec{ServiceSpec: api.ServiceSpec{
			Replicas:  &replicas,
			Container: api.ContainerSpec{Image: "shop:" + version, PullPolicy: api.PullNever},
			Ports:     []api.PortSpec{{Mode: api.PortModeHost, ContainerPort: 8080}},
			Update:    api.UpdateConfig{Parallelism: 2, FailureAction: api.FailureRollback},
		}},
	}
}
