package servicesets_test

import (
	"fmt"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestAClusterTellsHowFarItsServicesAre(t *testing.T) {
	w := newWorld(t)
	w.templates("cert-1-0-0", "ingress-1-0-0")
	w.start()
	cd := cluster("prod", "gold", service("cert=cert-1-0-0"), service("ingress=ingress-1-0-0", "cert"))
	w.create(cd)
	w.wants(cd, "Ready=False InFlight: cert 1.0.0 is on its way; ingress waits for cert", "Progressing=True InFlight", "Blocked=False NotBlocked")
	set := w.setName(cd, nil)
	w.report(set, v1alpha1.ServiceStateFailed, "cert")
	w.wants(cd, "Ready=False Failed: cert: 1.0.0 failed: the hook failed; ingress waits for cert", "Progressing=False Failed: ingress waits for cert", "Blocked=True Failed: cert: 1.0.0 failed")
	w.report(set, v1alpha1.ServiceStateDeployed, "cert")
	w.wants(cd, "Ready=False InFlight: ingress 1.0.0 is on its way", "Blocked=False")
	w.report(set, v1alpha1.ServiceStateDeployed, "ingress")
	w.wants(cd, "Ready=True Deployed: all 2 services are deployed", "Progressing=False Deployed", "Blocked=False")
	settles(w, cd, "all is counted", func(cd *v1alpha1.ClusterDeployment) error {
		if cd.Status.ServicesDeployed != "2/2" || len(cd.Status.Services) != 2 || len(cd.Status.ServiceSets) != 1 {
			return fmt.Errorf("%+v", cd.Status)
		}
		return nil
	})
}
